"""Records of when the long tests passed."""

import pytest

from tools import long_tests


@pytest.fixture
def record_file(tmp_path, monkeypatch):
    """A file of records that has none; git says that HEAD is `abc`, and the one recorded."""
    file = tmp_path / "long-passed.txt"
    file.write_text("")
    monkeypatch.setattr(long_tests, "FILE", file)
    monkeypatch.setattr(
        long_tests, "git", lambda verb, *_: "abc 2026-01-02" if verb == "log" else "0"
    )
    return file


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["long_tests", *arguments])
    long_tests.main()


def test_a_target_that_never_passed_is_told(record_file, monkeypatch, capsys):
    for passed, target in enumerate(long_tests.TARGETS):
        run(monkeypatch, "check")
        printed = capsys.readouterr().out
        run(monkeypatch, "record", target)
        capsys.readouterr()
        assert printed.count("has never passed") == len(long_tests.TARGETS) - passed
        assert f"make {target} has never passed as a whole: run it and commit" in printed
    run(monkeypatch, "check")
    assert "make test-long passed on 2026-01-02, 0 commits ago" in capsys.readouterr().out


def test_check_fails_if_a_record_is_old(record_file, monkeypatch):
    long_tests.record("test-long")
    monkeypatch.setattr(long_tests, "git", lambda *_: "151")
    with pytest.raises(SystemExit, match="1"):
        run(monkeypatch, "check")


@pytest.mark.parametrize(("behind", "old"), [(150, False), (151, True)])
def test_a_record_counts_for_150_commits(record_file, monkeypatch, behind, old):
    long_tests.record("test-long")
    monkeypatch.setattr(long_tests, "git", lambda *_: str(behind))
    text, is_old = long_tests.age("test-long")
    assert is_old is old
    assert f"2026-01-02, {behind} commits ago" in text
    assert ("run it and commit" in text) is old


def test_a_commit_that_the_repository_lacks_is_told(record_file, monkeypatch):
    long_tests.record("test-long")
    monkeypatch.undo()
    monkeypatch.setattr(long_tests, "FILE", record_file)
    text, is_old = long_tests.age("test-long")
    assert text.endswith("at abc, which this repository lacks")
    assert not is_old
