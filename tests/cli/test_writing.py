"""klsa-index add, delete, refit and rollback --writes: output and effect."""

import json

import pytest

NEW = [
    {"id": "horn", "title": "Horn", "text": "A horn that will not sound."},
    {"id": "heat", "title": "Heat", "text": "Radiators."},
]


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in NEW))
    return path


def ids(shell):
    lines = shell("klsa-index", "dump", "cars").out.splitlines()
    return [json.loads(line)["id"] for line in lines]


def test_documents_come_and_go(shell, built, new):
    done = shell("klsa-index", "add", "cars", new)
    assert (done.code, done.out, done.err) == (0, "cars: added 2 documents; 5 in total\n", "")
    assert shell("klsa-search", "cars", "horn", "--ranker", "bm25").out.split()[:2] != []
    assert ids(shell) == ["cold", "tyre", "road", "horn", "heat"]
    done = shell("klsa-index", "delete", "cars", "cold", "never")
    assert (done.code, done.out) == (0, "cars: deleted 1 document; 4 in total\n")
    assert done.err == "no document `never` in index `cars`\n"
    done = shell("klsa-index", "refit", "cars")
    assert (done.code, done.out) == (0, "cars: 4 documents, generation 000002\n")
    assert ids(shell) == ["tyre", "road", "horn", "heat"]


def test_commands_that_write_print_json(shell, built, new):
    with new.open("a") as file:
        file.write("no json\n")
    assert shell("klsa-index", "add", "cars", new).code == 1
    assert ids(shell) == ["heat", "cold", "tyre", "road"]
    told = shell("klsa-index", "add", "cars", new, "--on-error", "skip", "--json").json
    assert told.pop("unread")["count"] == 0
    assert "invalid JSON" in told["skipped"].pop("first")[0]
    assert told == {
        "name": "cars", "generation": "000001", "documents": 5, "log_position": 2, "added": 2,
        "skipped": {"count": 1, "kinds": {}}, "numbered": [], "notes": [],
        "warnings": {"count": 0, "first": [], "kinds": {}},
    }  # fmt: skip
    told = shell("klsa-index", "delete", "cars", "horn", "horn", "never", "--json").json
    assert (told["deleted"], told["documents"], told["log_position"]) == (1, 4, 3)
    assert told["unknown"] == ["never"]
    done = shell("klsa-index", "add", "cars", new, "--on-error", "skip")
    assert "skipped 1 bad record;" in done.err


def test_values_that_count_as_missing_are_reported(shell, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("id,text,price\na,hot,5\nb,cold,10\n")
    assert shell("klsa-index", "build", table, "--name", "cars").code == 0
    table.write_text("id,text,price,size\nc,hot,N/A,12\nd,cold,free,7\n")
    done = shell("klsa-index", "add", "cars", table)
    assert done.code == 0
    assert "price 2" in done.err.splitlines()[0]
    assert "document 'c': the number field 'price' has \"N/A\"" in done.err
    drift = shell("klsa-index", "info", "cars", "--json").json["drift"]
    assert (drift["fields"], drift["type_mismatches"]) == ({"size": "keyword"}, {"price": 2})
    told = shell("klsa-index", "info", "cars").out
    assert "price 2" in told
    assert "size (keyword)" in told
    done = shell("klsa-index", "refit", "cars")
    assert "price (number, 2 documents, 2 with another value)" in " ".join(
        shell("klsa-index", "info", "cars").out.split()
    )


def test_a_file_may_have_other_forms_than_the_index(shell, tmp_path):
    (tmp_path / "de.csv").write_text("id;text;on;kg\n1;pump;31.12.2025;2,5\n", encoding="utf-8")
    (tmp_path / "us.csv").write_text('id,text,on,kg\n2,<b>pump</b>,3/5/2026,"2,500"\n')
    assert shell("klsa-index", "build", tmp_path / "de.csv", "--name", "cars").code == 0
    forms = ["--dates", "month-first", "--decimal", "point", "--html", "text"]
    done = shell("klsa-index", "add", "cars", tmp_path / "us.csv", *forms)
    assert (done.code, done.err) == (0, "")
    added = json.loads(shell("klsa-index", "dump", "cars").out.splitlines()[-1])
    assert added["text"] == "pump"
    assert added["metadata"] == {"on": "2026-03-05", "kg": 2500.0}
    done = shell("klsa-index", "refit", "cars", "--dates", "day-first", "--html", "none")
    assert done.code == 0
    assert shell("klsa-index", "info", "cars", "--json").json["settings"]["dates"] == "day-first"


def test_writes_are_undone_by_the_batch(shell, built, new):
    shell("klsa-index", "add", "cars", new)
    shell("klsa-index", "delete", "cars", "tyre", "road")
    told = shell("klsa-index", "info", "cars").out
    assert "rollback --writes 1  0 written, 2 deleted at 2" in told
    assert "rollback --writes 2  2 written, 0 deleted at 2" in told
    done = shell("klsa-index", "rollback", "cars", "--writes", 1)
    assert (done.code, done.err) == (0, "")
    assert done.out == "cars: undid 1 batch of writes; 2 writes left in the log\n"
    assert ids(shell) == ["cold", "tyre", "road", "horn", "heat"]
    done = shell("klsa-index", "rollback", "cars", "--writes", 2)
    assert done.code == 1
    assert "has 1 batch of writes to undo, not 2" in done.err
    assert shell("klsa-index", "rollback", "cars", "--writes", 1).code == 0
    assert ids(shell) == ["heat", "cold", "tyre", "road"]
    assert shell("klsa-index", "verify", "cars").code == 0
    assert shell("klsa-index", "rollback", "cars", "--writes", 1, "--to", "000001").code == 2


def test_info_prints_the_drift(shell, built, new, tmp_path):
    assert shell("klsa-index", "info", "cars", "--json").json["drift"] is None
    assert "drift" not in shell("klsa-index", "info", "cars").out
    shell("klsa-index", "add", "cars", new)
    drift = shell("klsa-index", "info", "cars", "--json").json["drift"]
    unseen, changed = drift.pop("unseen_share"), drift.pop("changed_share")
    assert (0 < unseen < 1, changed) == (True, 0.5)
    assert drift == {
        "documents": 5, "added": 2, "deleted": 1, "added_share": 0.4, "fields": {},
        "type_mismatches": {},
    }  # fmt: skip
    assert "5 documents, 40.0% of them added" in shell("klsa-index", "info", "cars").out
    (tmp_path / "index" / "cars" / "000001" / "lengths.npy").write_bytes(b"")
    assert "lengths.npy" in shell("klsa-index", "info", "cars", "--json").json["drift"]["error"]
    assert "unknown: " in shell("klsa-index", "info", "cars").out


def test_a_refit_takes_other_settings_of_searching(shell, built, new):
    shell("klsa-index", "add", "cars", new)
    assert shell("klsa-index", "refit", "cars", "--alpha", 0.25, "--exact").code == 0
    settings = shell("klsa-index", "info", "cars", "--json").json["settings"]
    assert (settings["alpha"], settings["exact"], settings["z"]) == (0.25, True, 20)
    assert "alpha" in shell("klsa-index", "refit", "cars", "--alpha", 2).err
    assert "horn" in ids(shell)


def test_an_index_is_divided_and_joined(shell, built):
    done = shell("klsa-index", "refit", "cars", "--partitions", 2, "--workers", 1)
    assert done.out.endswith("documents in 2 partitions, generation 000002\n")
    assert "has partitions" not in shell("klsa-index", "verify", "cars", "--deep").err
    done = shell("klsa-index", "refit", "cars", "--partitions", 1)
    assert done.out.endswith("documents in 1 partition, generation 000003\n")
    assert shell("klsa-index", "rollback", "cars").out.startswith("cars: generation 000002")
