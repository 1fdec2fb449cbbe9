"""klsa-index sync: what it reports, and what it leaves in the index."""

import json

import pytest

from .conftest import DOCUMENTS

NEW = [*DOCUMENTS[1:], {"id": "horn", "title": "", "text": "A horn that will not sound."}]
CHANGED = [{**DOCUMENTS[1], "text": "Colder."}, *NEW[1:]]


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in CHANGED))
    return path


def exported(shell):
    return [json.loads(line) for line in shell("klsa-index", "dump", "cars").out.splitlines()]


def by_id(documents):
    return {document["id"]: document for document in documents}


def test_an_index_follows_its_source(shell, built, new):
    dry = shell("klsa-index", "sync", "cars", new, "--dry-run", "--ids")
    assert (dry.code, dry.err) == (0, "")
    assert dry.out.splitlines() == [
        "cars: 1 added, 1 changed, 1 deleted, 2 unchanged; dry run, nothing was changed",
        "added    horn", "changed  cold", "deleted  heat",
    ]  # fmt: skip
    assert by_id(exported(shell)) == by_id(DOCUMENTS)
    done = shell("klsa-index", "sync", "cars", new)
    assert (done.code, done.err) == (0, "")
    assert done.out == "cars: 1 added, 1 changed, 1 deleted, 2 unchanged; 4 in total\n"
    assert by_id(exported(shell)) == by_id(CHANGED)
    told = shell("klsa-index", "sync", "cars", new, "--json", "--ids").json
    assert told == {
        "name": "cars", "generation": "000001", "documents": 4, "log_position": 3,
        "added": 0, "changed": 0, "deleted": 0, "unchanged": 4, "batches": 0, "dry_run": False,
        "ids": {"added": [], "changed": [], "deleted": []},
        "removed_fields": [], "warnings": {"count": 0, "first": [], "kinds": {}},
        "skipped": {"count": 0, "first": [], "kinds": {}},
        "unread": {"count": 0, "first": {}, "kinds": {}}, "numbered": [], "notes": [],
    }  # fmt: skip
    assert shell("klsa-index", "rollback", "cars", "--writes", 1).code == 0
    assert by_id(exported(shell)) == by_id(DOCUMENTS)


def test_a_truncated_or_unreadable_source_changes_nothing(shell, built, new, tmp_path):
    new.write_text(json.dumps(DOCUMENTS[0]))
    done = shell("klsa-index", "sync", "cars", new, "--max-delete", "50%")
    assert done.code == 1
    assert "has 1 document and index `cars` has 4, so 3 would be deleted" in done.err
    assert "--max-delete 3" in done.err
    new.write_text("")
    assert "has no documents" in shell("klsa-index", "sync", "cars", new, "--format", "jsonl").err
    assert shell("klsa-index", "sync", "cars", tmp_path / "none.csv").code == 1
    done = shell("klsa-index", "sync", "cars", new, "--max-delete", "some")
    assert (done.code, "max_delete" in done.err) == (2, True)
    assert "no index" in shell("klsa-index", "sync", "none", new).err
    assert exported(shell) == DOCUMENTS


def test_a_build_over_an_index_offers_sync(shell, cars, new):
    shell("klsa-index", "build", cars, "--name", "cars")
    again = shell("klsa-index", "build", cars, "--name", "cars")
    assert (again.code, "klsa-index sync cars SOURCE" in again.err) == (0, True)
    other = shell("klsa-index", "build", new, "--name", "cars")
    assert (other.code, "`klsa-index sync cars SOURCE`" in other.err) == (1, True)
    shell("klsa-index", "delete", "cars", "cold")
    written = shell("klsa-index", "build", cars, "--name", "cars")
    assert (written.code, "`klsa-index sync cars SOURCE`" in written.err) == (1, True)


def test_the_options_of_the_build_are_those_of_a_sync(shell, tmp_path):
    table = tmp_path / "tickets.csv"
    table.write_text("ticket,subject,notes\n1,Belt,worn\n2,Horn,silent\n2,Horn,again\n")
    named = ["--id", "ticket", "--title", "subject", "--text", "notes", "--on-error", "skip"]
    assert shell("klsa-index", "build", table, "--name", "cars", *named).code == 0
    done = shell("klsa-index", "sync", "cars", table)
    assert done.out == "cars: 0 added, 0 changed, 0 deleted, 2 unchanged; 2 in total\n"
    assert "skipped 1 bad record" in done.err
    assert shell("klsa-index", "sync", "cars", table, "--on-error", "stop").code == 1


def test_a_sync_takes_back_an_option_of_the_build(shell, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Belt\n\nworn\n\n# Horn\n\nsilent\n")
    assert shell("klsa-index", "build", folder, "--name", "cars", "--sections").code == 0
    done = shell("klsa-index", "sync", "cars", folder, "--no-sections")
    assert done.out == "cars: 1 added, 0 changed, 2 deleted, 0 unchanged; 1 in total\n"
