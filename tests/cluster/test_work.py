"""Steps run once, leave complete results or none, and are named by their inputs."""

import numpy as np
import pytest

from klsa_search.cluster.work import StepResult, Work, run_step

from .local_workers import Here


def double(out, source, *, times=2, array=None):
    values = (
        np.load(source.path / "values.npy") if isinstance(source, StepResult) else np.array(source)
    )
    np.save(out / "values.npy", times * values)
    (out / "begun").touch()


def failing(out, source):
    (out / "half").touch()
    raise ValueError(f"no good: {source}")


@pytest.fixture
def work(tmp_path):
    return Work(tmp_path / "work", Here())


def values_of(made):
    return np.load(made.path / "values.npy").tolist()


def test_steps_follow_one_another(work):
    first, second = work.make(double, {"source": [1, 2]}, {"source": [3]})
    (third,) = work.make(double, {"source": first})
    assert (values_of(first), values_of(second), values_of(third)) == ([2, 4], [6], [4, 8])


def test_different_steps_are_done_side_by_side_and_told_by_group(work):
    ones = [(double, {"source": [number]}) for number in (1, 2)]
    groups = work.make_groups(ones, [], [(double, {"source": [3], "times": 3})])
    assert [list(map(values_of, group)) for group in groups] == [[[2], [4]], [], [[9]]]


def test_what_is_there_is_not_made_again(work):
    made = work.one(double, source=[1])
    (made.path / "begun").unlink()
    assert work.one(double, source=[1]) == made
    assert not (made.path / "begun").exists()


def test_everything_an_outcome_follows_from_is_in_its_name(work):
    arrays = np.arange(3.0), np.arange(3.0) + 1, np.arange(3), np.arange(3.0).reshape(1, 3)
    calls = [{"source": [1], "array": array} for array in arrays]
    calls += [{"source": [1]}, {"source": [1], "times": 3}, {"source": [2]}]
    calls += [{"source": made} for made in work.make(double, {"source": [1]}, {"source": [2]})]
    assert len({made.name for made in work.make(double, *calls)}) == len(calls)


def test_what_fails_leaves_nothing(work, tmp_path):
    with pytest.raises(ValueError, match="no good: 1"):
        work.one(failing, source=1)
    assert list((tmp_path / "work").iterdir()) == []


def test_what_a_dead_worker_left_goes_and_what_is_whole_stays(work, tmp_path):
    made = work.one(double, source=[1])
    (tmp_path / "work" / f".{made.name}.0f").mkdir()
    again = Work(tmp_path / "work", Here())
    assert [each.name for each in (tmp_path / "work").iterdir()] == [made.name]
    assert again.one(double, source=[1]) == made


def test_two_who_do_the_same_agree(tmp_path):
    def meanwhile(out, source):
        run_step(double, tmp_path / "made", {"source": source})
        double(out, source)

    run_step(meanwhile, tmp_path / "made", {"source": [5]})
    assert values_of(StepResult(tmp_path / "made")) == [10]
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_what_is_emptied_was_made_all_the_same(work):
    made = work.one(double, source=[1])
    work.empty(made)
    assert [path.name for path in made.path.iterdir()] == ["begun"]
    assert work.one(double, source=[1]) == made
    assert not (made.path / "values.npy").exists()
