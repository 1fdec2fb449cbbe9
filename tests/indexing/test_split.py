"""Fields of several values: texts that are split, and lists, in the build and in later writes."""

import csv
import itertools
import random
from contextlib import closing

import pytest

from klsa_search import Document, build
from klsa_search.collection import open_collection
from klsa_search.core.config import Settings
from klsa_search.errors import BadDocument, CollectionError, SettingsError
from klsa_search.indexing.rewrite import refit
from klsa_search.storage.repair import export, readable_generations
from tests.support.worlds import random_documents

TAGS = ["blue", "red", "red wine", "Ärger"]
SIZES = [1, 2.5, 7, 40]
SPLIT = {"tags": ";", "sizes": " | "}


def rows():
    """Rows as text, and the values of their fields as a reader would split them."""
    chance = random.Random(7)
    for number, text in enumerate(random_documents(24, 20)):
        tags = chance.choices(TAGS, k=chance.randrange(4))
        sizes = chance.choices(SIZES, k=chance.randrange(3))
        row = {
            "id": str(number),
            "text": text,
            "tags": chance.choice([";", " ; ", ";;"]).join(tags),
            "sizes": " | ".join(map(str, sizes)),
        }
        yield row, {"tags": tags, "sizes": sizes}


ROWS = list(rows())
MODEL = {row["id"]: values for row, values in ROWS}


def table(path, some):
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["id", "text", "tags", "sizes"])
        writer.writeheader()
        writer.writerows(row for row, _ in some)
    return path


@pytest.fixture(scope="module", params=["build", "later", "refit"])
def index(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("split")
    first = ROWS if request.param == "build" else ROWS[:9]
    index = build(table(home / "a.csv", first), name="a", home=home, split=SPLIT)
    if request.param != "build":
        index.add(table(home / "b.csv", ROWS[9:15]))
        index.write([Document(**row) for row in map(written, ROWS[15:])])
    if request.param == "refit":
        index.close()
        index = refit(home / "a")
    yield index
    index.close()


@pytest.mark.parametrize("name", ["tagz", "text", "id"])
def test_a_split_field_that_no_document_has_is_refused(tmp_path, name):
    with pytest.raises(SettingsError, match=f"a field `{name}`.*`sizes`, `tags`"):
        build(table(tmp_path / "a.csv", ROWS), name="a", home=tmp_path, split={name: ";"})


def written(pair):
    row = dict(pair[0])
    return {"id": row.pop("id"), "text": row.pop("text"), "metadata": row}


CONDITIONS = [
    *((f'tags = "{tag}"', lambda v, tag=tag: tag in v["tags"]) for tag in TAGS),
    ("tags != red", lambda v: "red" not in v["tags"]),
    ("tags in [red, blue]", lambda v: bool({"red", "blue"} & {*v["tags"]})),
    ("tags not in [red, blue]", lambda v: not {"red", "blue"} & {*v["tags"]}),
    ("tags contains ÄR", lambda v: "Ärger" in v["tags"]),
    ("tags exists", lambda v: bool(v["tags"])),
    ("sizes > 2.5", lambda v: any(size > 2.5 for size in v["sizes"])),
    ("sizes 2 TO 7", lambda v: any(2 <= size <= 7 for size in v["sizes"])),
    ("sizes = 40", lambda v: 40 in v["sizes"]),
    ("sizes is null", lambda v: not v["sizes"]),
]


def found(index, condition):
    return {hit.id for hit in index.search("", filter=condition, k=99).hits}


def test_filters_pass_documents_with_one_value_that_passes(index):
    assert {name: field.type for name, field in index.fields.items()} == {
        "tags": "keyword",
        "sizes": "number",
    }
    for condition, holds in CONDITIONS:
        assert found(index, condition) == {id_ for id_, v in MODEL.items() if holds(v)}, condition
    for (one, first), (two, second) in itertools.pairwise(CONDITIONS):
        both = {id_ for id_, v in MODEL.items() if first(v) and second(v)}
        assert found(index, f"{one} and {two}") == both


def test_facets_count_each_value_once_a_document(index):
    for name in SPLIT:
        all_documents = index.search("", filter="tags exists or tags is null", facets=[name], k=1)
        facet = all_documents.facets[name]
        counts = dict(facet.values)
        values = {value for v in MODEL.values() for value in v[name]}
        assert counts == {each: sum(each in v[name] for v in MODEL.values()) for each in values}
        assert facet.missing == sum(not v[name] for v in MODEL.values())


def test_sorting_takes_the_smallest_value_or_the_largest_in_descending_order(index):
    for order, chosen in (("asc", min), ("desc", max)):
        hits = index.search("", filter="sizes exists", sort=[f"sizes:{order}"], k=99).hits
        values = [chosen(MODEL[hit.id]["sizes"]) for hit in hits]
        assert values == sorted(values, reverse=order == "desc")


def test_documents_have_lists(index):
    for id_, values in MODEL.items():
        metadata = index.document(id_).metadata
        assert metadata.get("tags", []) == values["tags"]
        assert metadata.get("sizes", []) == list(map(str, values["sizes"]))
    hits = {hit.id: hit.metadata for hit in index.search("", filter="sizes exists", k=99).hits}
    assert all(metadata["sizes"] == MODEL[id_]["sizes"] for id_, metadata in hits.items())
    assert index.settings.split == ("sizes= | ", "tags=;")


def test_an_export_is_read_as_the_same_documents(index, tmp_path):
    file = tmp_path / "all.jsonl"
    export(readable_generations(index.path.parent, []), file, [])
    again = {d.id: d.metadata for d in open_collection(file).documents()}
    assert again == {id_: dict(index.document(id_).metadata) for id_ in MODEL}
    with closing(build(file, name="again", home=tmp_path)) as other:
        for condition, holds in CONDITIONS:
            assert found(other, condition) == {id_ for id_, v in MODEL.items() if holds(v)}


def test_a_refit_splits_the_texts_of_an_existing_index(tmp_path):
    build(table(tmp_path / "a.csv", ROWS), name="a", home=tmp_path).close()
    fields = ["sizes:number"]
    with closing(refit(tmp_path / "a", split=SPLIT, fields=fields)) as index:
        for condition, holds in CONDITIONS:
            assert found(index, condition) == {id_ for id_, v in MODEL.items() if holds(v)}


def test_split_fields_change_the_fingerprint():
    assert Settings().fingerprint() != Settings(split=("tags=;",)).fingerprint()
    assert Settings.checked({"split": {"b": "=", "a": ","}}).separators() == {"a": ",", "b": "="}


@pytest.mark.parametrize(
    "split", [{"tags": ""}, {"": ";"}, ["tags"], ["tags=;", "tags=,"], {"a=b": ";"}, "tags=;"]
)
def test_separators_that_make_no_sense_are_refused(split):
    with pytest.raises(SettingsError, match="split"):
        Settings.checked({"split": split})


def test_each_part_must_fit_a_declared_field(tmp_path):
    fields = {"fields": ["sizes:number"], "split": {"sizes": ","}}
    records = [{"id": 1, "text": "a b", "sizes": "1,2"}]
    with closing(build(records, name="a", home=tmp_path, **fields)) as index:
        with pytest.raises(CollectionError, match="the number field 'sizes' contains \"x\""):
            index.add([{"id": 2, "text": "c", "sizes": "1,x"}])
        with pytest.raises(BadDocument, match='contains "x"'):
            index.write([Document(id="2", metadata={"sizes": "1,x"})])
        index.add([{"id": 2, "text": "c", "sizes": [3, "4"]}])
        assert found(index, "sizes = 4") == {"2"}
