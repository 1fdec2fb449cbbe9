"""The record of when all tests passed."""

import pytest

from tools import long_tests


@pytest.mark.parametrize(
    ("behind", "acceptable"), [(0, True), (long_tests.LIMIT, True), (long_tests.LIMIT + 1, False)]
)
def test_a_pass_counts_for_a_number_of_commits(monkeypatch, behind, acceptable):
    monkeypatch.setattr(long_tests, "git", lambda *_: str(behind))
    said, recent = long_tests.age("abc 2026-01-02")
    assert recent is acceptable
    assert f"2026-01-02, {behind} commits ago" in said
    assert ("make test-long" in said) is not acceptable


def test_a_commit_that_is_unknown_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(long_tests, "ROOT", tmp_path)
    said, recent = long_tests.age("abc 2026-01-02")
    assert "abc, which is not in this repository" in said
    assert not recent


def test_before_the_first_pass_nothing_fails():
    assert long_tests.age("never\n") == (
        "all tests together have not passed yet: make test-long",
        True,
    )


def test_a_pass_names_the_commit_and_its_date(tmp_path, monkeypatch, capsys):
    file = tmp_path / "passed.txt"
    monkeypatch.setattr(long_tests, "FILE", file)
    monkeypatch.setattr(
        long_tests, "git", lambda verb, *_: "abc 2026-01-02" if verb == "log" else "0"
    )
    monkeypatch.setattr("sys.argv", ["long_tests", "record"])
    long_tests.main()
    assert file.read_text() == "abc 2026-01-02\n"
    assert capsys.readouterr().out == "all tests passed on 2026-01-02, 0 commits ago\n"
