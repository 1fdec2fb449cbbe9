"""Power loss during builds, writes and refits: the index opens in an acknowledged state."""

from contextlib import closing

import pytest

from klsa_search import open_index
from klsa_search.errors import IndexNotFound
from klsa_search.storage.aliases import aliases_in
from klsa_search.storage.maintenance import verify
from tests.support.power_loss import disks, lay_out, record

pytestmark = pytest.mark.slow

PROGRAM = """
import os
from pathlib import Path
from klsa_search import build
from klsa_search.indexing import refit
from klsa_search.storage.maintenance import rollback, undo_writes
from klsa_search.storage.aliases import set_alias

def documents(*numbers):
    return [{"id": str(n), "text": f"w{n} w{n % 3} shared", "year": n} for n in numbers]

def acknowledge(step):
    os.write(1, f"{step} ".encode())

path = Path("home", "index")
build(documents(*range(8)), name="index", home=path.parent).close()
acknowledge("built")
with refit(path) as index:
    acknowledge("refitted")
    index.add(documents(8, 9, 3))
    acknowledge("added")
    index.judge("shared", "1", 2)
    acknowledge("judged")
    index.set_synonyms({"w1": ["w2"]})
    acknowledge("synonyms")
    set_alias(path.parent, "live", "index")
    acknowledge("aliased")
    index.delete(["0", "9"])
    acknowledge("deleted")
undo_writes(path)
acknowledge("undone")
refit(path).close()
acknowledge("refitted")
rollback(path)
acknowledge("rolled-back")
"""
FIRST = {str(n) for n in range(8)}
LATER = {str(n) for n in range(10)}
STATES = [None, FIRST, FIRST, *[LATER] * 4, LATER - {"0", "9"}, LATER, LATER, LATER]


def test_an_index_has_what_was_acknowledged(tmp_path):
    (folder := tmp_path / "run").mkdir()
    tried = 0
    for acknowledged, disk in disks(record(PROGRAM, folder, tmp_path / "trace"), every=3):
        lay_out(disk, tmp_path / "disk")
        path, done = tmp_path / "disk" / "home" / "index", len(acknowledged)
        try:
            verify(path)
            with closing(open_index(path)) as index:
                found = set(index.ids())
                assert found == {hit.id for hit in index.search("shared", 100).hits}
                judged = {each.text: each.grades for each in index.judgements.queries()}
                assert judged == {"shared": {"1": 2}} or "judged" not in acknowledged
                assert index.synonyms == {"w1": ("w2",)} or "synonyms" not in acknowledged
            aliases = aliases_in(path.parent)
            assert aliases == {"live": "index"} or "aliased" not in acknowledged
        except IndexNotFound:
            found = None
        assert found in STATES[done : done + 2], acknowledged
        tried += 1
    assert tried > 100
