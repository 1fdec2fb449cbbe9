"""Archive of an index in the present format, for the tests of later releases.

    python -m tools.format_archive

Writes `tests/formats/FORMAT.tar.gz`, an index directory with all that an index can hold (metadata
fields, later writes, deleted and undone ones, synonyms, judgements, an alias), and `FORMAT.json`
with what it answers. Run it with the code of the release that introduces a format; an archive that
exists is never written again.
"""

import json
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

from klsa_search import build, open_index
from klsa_search.storage.aliases import aliases_in, set_alias
from klsa_search.storage.maintenance import undo_writes
from klsa_search.storage.manifest import FORMAT_VERSION

FORMATS = Path(__file__).parent.parent / "tests" / "formats"
NAME = "cars"
PARTS = ("engine", "brake", "tyre", "lamp", "gearbox", "pump", "valve", "hose")
FAULTS = ("leaks coolant", "overheats", "rattles in the cold", "is worn", "fails at night")


def document(number):
    """The document of that number: five of each part, all different."""
    part, fault = PARTS[number % 8], FAULTS[number // 8]
    metadata = {
        "part": part,
        "year": 1980 + number,
        "price": number / 4,
        "sold": f"20{number // 4 + 10}-0{number % 9 + 1}-01",
        "tags": [part, fault.split()[0]][: number % 3],
    }
    return {
        "id": f"{part}/{number}" if number else "ü 0",
        "title": f"The {part}" if number % 5 else "",
        "text": f"The {part} of car {number} {fault}. " * (number % 4 + 1) + "Größe 飞机",
        **{name: value for name, value in metadata.items() if (number + len(name)) % 7},
    }


def write(home):
    """Write an index of 40 documents, later writes and all that belongs to it."""
    with closing(build([document(number) for number in range(36)], name=NAME, home=home)) as index:
        index.add([document(number) for number in range(36, 40)])
        index.add([{"id": "hose/7", "title": "Replaced", "text": "A hose of rubber.", "year": 7}])
        index.delete(["ü 0", "brake/1", "pump/37", "nothing"])
        index.add([{"id": "undone", "text": "A write that was undone."}])
        index.set_synonyms({"tire": ["tyre"], "light": ["lamp"]})
        index.judge("worn tyre", "tyre/26", 2)
        index.judge("worn tyre", "tyre/2", 1)
        index.judge("lamp", "lamp/3", 1)
    undo_writes(home / NAME)
    set_alias(home, "live", NAME)


def answers(home):
    """Return what the index of that directory answers, as JSON has it."""
    with closing(open_index(home / NAME)) as index:
        ids = sorted(index.ids())
        queries = ("worn tyre", "engine overheats", "light", "rubber", "Größe", '"coolant the"')
        filters = ("year >= 2010", 'part = "lamp"', 'tags = "pump"', 'sold < "2012-01-01"')
        found = {
            "aliases": aliases_in(home),
            "documents": {
                each.id: [each.title, each.text, dict(each.metadata)]
                for each in map(index.document, ids)
            },
            "bm25": {
                query: [
                    [hit.id, round(hit.score, 4)]
                    for hit in index.search(query, 20, ranker="bm25").hits
                ]
                for query in queries
            },
            "default": {
                query: [hit.id for hit in index.search(query, 3).hits] for query in queries
            },
            "filters": {
                each: sorted(hit.id for hit in index.search("car", 40, filter=each).hits)
                for each in filters
            },
            "sorted": [
                hit.id for hit in index.search("car", 5, sort=["year:desc"], ranker="bm25").hits
            ],
            "facets": {
                name: facet.values
                for name, facet in index.search("car", facets=["part", "tags"]).facets.items()
            },
            "synonyms": {word: list(others) for word, others in index.synonyms.items()},
            "judgements": {each.text: dict(each.grades) for each in index.judgements.queries()},
        }
    return json.loads(json.dumps(found))


def main():
    """Write the archive of the present format, unless there is one."""
    archive = FORMATS / f"{FORMAT_VERSION}.tar.gz"
    if archive.exists():
        sys.exit(f"{archive} exists; archives of formats are not changed")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        with tarfile.open(archive, "w:gz") as packed:
            for path in sorted(Path(folder).rglob("*")):
                packed.add(path, path.relative_to(folder), recursive=False)
        text = json.dumps(answers(Path(folder)), indent=1, ensure_ascii=False)
        archive.with_name(f"{FORMAT_VERSION}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
