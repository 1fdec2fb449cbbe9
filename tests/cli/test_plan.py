"""klsa-index plan, and the memory limit of klsa-index build."""

import pytest

from klsa_search.core.progress import format_duration


def test_an_estimate_for_people(shell, cars):
    done = shell("klsa-index", "plan", cars, "--memory", "2GiB")
    assert (done.code, done.err) == (0, "")
    for fact in ("4, 4 of them read", "memory of the build", "processor time", "disk"):
        assert fact in done.out
    assert "too small" not in done.out
    assert not list(cars.parent.glob("index*"))


def test_an_estimate_for_programs_knows_the_settings(shell, cars):
    told = shell("klsa-index", "plan", cars, "--json").json
    assert told["documents"] == told["sampled"] == 4
    assert told["fits"] is True
    whole = shell("klsa-index", "plan", cars, "--json", "--spectral", "exponential").json
    assert whole["disk"] > told["disk"]


def test_a_budget_too_small_is_reported_by_the_estimate_and_refused_by_the_build(shell, cars):
    told = shell("klsa-index", "plan", cars, "--memory", "1MiB")
    assert (told.code, told.err) == (0, "")
    assert "limit of 1.0 MiB is too small for one partition" in told.out
    done = shell("klsa-index", "build", cars, "--name", "cars", "--memory", "1MiB")
    assert done.code == 2
    assert "error: memory = 1.0 MiB is not enough: about 4 documents need" in done.err


@pytest.mark.parametrize("command", [["plan"], ["build", "--name", "cars"]])
def test_an_invalid_amount_is_wrong_usage(shell, cars, command):
    done = shell("klsa-index", *command, cars, "--memory", "much")
    assert done.code == 2
    assert "memory = 'much'" in done.err


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (0.2, "< 1 s"), (4, "4 s"), (125, "2 min 5 s"), (12000, "3 h 20 min")],
)
def test_times_in_words(seconds, said):
    assert format_duration(seconds) == said


def test_a_plan_without_documents(shell, cars):
    done = shell("klsa-index", "plan", "--documents", 1000, "--words", 20)
    assert (done.code, done.err) == (0, "")
    for fact in ("1,000 documents of 20 words", "memory of the service", "searches per second"):
        assert fact in done.out
    for arguments in ([], ["--documents", 5], ["--words", 5], [cars, "--documents", 5]):
        wrong = shell("klsa-index", "plan", *arguments)
        assert wrong.code == 2
        assert "--documents and --words" in wrong.err
