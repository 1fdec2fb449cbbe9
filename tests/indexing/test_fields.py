"""Metadata fields, detected and declared, survive every kind of rebuild."""

import json
from contextlib import closing

import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.collection import Document
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.reading_options import DEFAULTS
from klsa_search.core.config import Settings
from klsa_search.core.progress import open_progress
from klsa_search.errors import CollectionError, SettingsError, StoreError
from klsa_search.indexing.build import plan
from klsa_search.indexing.reading import read
from klsa_search.indexing.rewrite import build_like, refit
from klsa_search.storage.maintenance import verify
from tests.support.worlds import random_documents

RECORDS = [
    {
        "id": str(number),
        "text": text,
        "year": str(1990 + number),
        "kind": ["odd", "even"][number % 2],
        "of": {"nested": number},
    }
    for number, text in enumerate(random_documents(20, 30))
]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def types(index):
    return {name: field.type for name, field in index.fields.items()}


def test_fields_are_found_and_masks_of_them_searched_within(tmp_path):
    with closing(build(RECORDS, name="a", home=tmp_path, fields=["year:number"])) as index:
        assert types(index) == {"kind": "keyword", "of.nested": "number", "year": "number"}
        assert not index.manifest.fields.others
        mask = index.fields["kind"].equal("even") & index.fields["year"].between(2000)
        assert np.flatnonzero(mask).tolist() == [11, 13, 15, 17, 19]
        positions, scores = index.rank("t00 t01", 20, mask=mask)
        whole, all_scores = index.rank("t00 t01", 20)
        assert positions.tolist() == [each for each in whole.tolist() if mask[each]]
        assert scores.tolist() == pytest.approx(all_scores[mask[whole]].tolist())
        with pytest.raises(TypeError):
            index.fields["other"] = index.fields["year"]
    with pytest.raises(StoreError, match="is closed"):
        index.fields  # noqa: B018 - it refuses
    assert verify(tmp_path / "a") == open_index(tmp_path / "a").manifest


TABLE = "id,text,price,code,sold,note\na,x y,5.5,00123,2024-03-01,\nb,x,10,7,,new\nc,x z,7,8,N/A,\n"


def test_numbers_of_a_table_are_found_by_all_values(tmp_path):
    source = tmp_path / "table.csv"
    source.write_text(TABLE)
    with closing(build(source, name="a", home=tmp_path / "in")) as index:
        assert types(index) == {
            "price": "number",
            "code": "keyword",
            "sold": "date",
            "note": "keyword",
        }
        found = index.search("x", sort=["price:desc"], facets=["note"])
        assert [(hit.id, hit.metadata["price"]) for hit in found.hits] == [
            ("b", 10),
            ("c", 7),
            ("a", 5.5),
        ]
        assert type(found.hits[0].metadata["price"]) is int
        assert found.hits[2].metadata["code"] == "00123"
        assert index.document("b").metadata["price"] == "10"
        assert (found.facets["note"].values, found.facets["note"].missing) == ((("new", 1),), 2)
        assert index.manifest.fields.columns["sold"].type_mismatches == 1
        source.write_text(TABLE.replace("7,8", "call us,8").replace("c,", "d,"))
        assert index.add(source).warnings.kinds == {"price": 1, "sold": 1}
        index.add([{"id": "e", "text": "x", "price": 6}, {"id": "f", "text": "x", "price": "6.5"}])
        prices = [hit.id for hit in index.search("x", filter="price < 7", sort=["price"]).hits]
        assert prices == ["a", "e", "f"]
    with closing(refit(open_index(tmp_path / "in" / "a"), fields=["price:keyword"])) as index:
        assert types(index)["price"] == "keyword"
        assert types(index)["sold"] == "date"


def test_codes_of_a_table_stay_texts_and_numbers_are_numbers(tmp_path):
    """Wherever a document is shown, but as it was stored by its ID."""
    source = tmp_path / "table.csv"
    source.write_text(
        "id,text,stock,version,phone,Order ID\na,x y,12,1.10,5551234,41\nb,x,3,1.1,5551235,42\n"
    )
    with closing(build(source, name="a", home=tmp_path / "in")) as index:
        assert types(index)["version"] == "keyword"
        (found,) = index.search("x", filter="version = 1.10 AND stock > 5 AND phone = 5551234")
        wanted = {"stock": 12, "version": "1.10", "phone": "5551234", "Order ID": "41"}
        assert found.metadata == index.excerpt("a").metadata == wanted
        assert index.document("a").metadata == wanted | {"stock": "12"}


def test_the_last_word_of_a_name_tells_versions_and_codes(tmp_path):
    quantities = ["release_year", "releaseYear", "Release Year", "revision_count", "mobile_price"]
    quantities += ["phone_stock", "number_of_parts", "zip_count"]
    names = ["id", "text", "revision", "app_version", "version_number", "zip_code", *quantities]
    rows = (
        ["a", "x", "3", "1.10", "1.2.3", "12345", *["1990"] * len(quantities)],
        ["b", "x", "4", "1.1", "1.2", "12346", *["1980"] * len(quantities)],
    )
    source = tmp_path / "table.csv"
    source.write_text("".join(f"{','.join(row)}\n" for row in (names, *rows)))
    with closing(build(source, name="a", home=tmp_path / "in")) as index:
        kinds = types(index)
        assert {kinds[name] for name in (*quantities, "revision", "zip_code")} == {"number"}
        assert kinds["app_version"] == kinds["version_number"] == "keyword"
        (found,) = index.search("x", filter="release_year >= 1990").hits
        assert found.metadata == dict.fromkeys(quantities, 1990) | {
            "revision": "3",
            "app_version": "1.10",
            "version_number": "1.2.3",
            "zip_code": "12345",
        }
    declared = ["zip_code:number"]
    with closing(build(source, name="b", home=tmp_path / "in", fields=declared)) as index:
        assert index.excerpt("a").metadata["zip_code"] == 12345
        index.add([{"id": "c", "text": "new", "zip_code": "12347"}])
        assert index.search("new").hits[0].metadata == {"zip_code": 12347}


@pytest.mark.parametrize("records", [RECORDS[:1], []])
def test_one_document_or_none(tmp_path, records):
    source = write(tmp_path / "a.jsonl", records)
    with closing(
        build(source, format="jsonl", name="a", home=tmp_path / "in", fields=["year:number"])
    ) as index:
        assert types(index)["year"] == "number"
        assert index.fields["year"].between(0).tolist() == [True] * len(records)


def test_the_order_of_declarations_does_not_matter_and_settings_keep_them(tmp_path):
    built = build(RECORDS, name="a", home=tmp_path, fields=("year:number", "kind"))
    other = build(RECORDS, name="b", home=tmp_path, fields=["kind", "year:number"])
    assert built.manifest.fingerprint == other.manifest.fingerprint
    assert built.settings.fields == ("kind", "year:number")
    assert open_index(tmp_path / "a").settings == built.settings
    again = refit(built, alpha=0.5)
    assert types(again) == types(built)
    assert again.manifest.fields == built.manifest.fields
    assert build_like(again, home=tmp_path, name="c").manifest.fields == built.manifest.fields
    changed = refit(again, fields=["year:keyword"])
    assert types(changed) == {"kind": "keyword", "of.nested": "number", "year": "keyword"}
    with pytest.raises(CollectionError, match="document '0': the date field 'year' contains"):
        refit(changed, fields=["year:date"])
    assert types(open_index(tmp_path / "a")) == types(changed)


def test_a_value_that_does_not_fit_stops_the_build_or_its_document_is_skipped(tmp_path):
    records = [*RECORDS[:3], {"id": "x", "text": "t01", "year": "soon"}, RECORDS[3]]
    source = write(tmp_path / "a.jsonl", records)
    reason = r"a\.jsonl:4: document 'x': the number field 'year' contains \"soon\""
    options = {"name": "a", "home": tmp_path / "in", "fields": ["year:number"]}
    for given in (source, records):
        with pytest.raises(CollectionError, match=reason.replace(r"a\.jsonl:", "(a.jsonl:)?")[13:]):
            build(given, **options)
    with pytest.raises(CollectionError, match=reason):
        plan(source, fields=["year:number"])
    with closing(build(source, on_error="skip", **options)) as index:
        assert index.ids() == ["0", "1", "2", "3"]
        assert index.manifest.counts.skipped == 1
        assert len(index.fields["year"]) == 4
    assert plan(source, on_error="skip", fields=["year:number"]).size.documents == 4


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (["year:numbr"], "one of: keyword, number, date"),
        (["dc:title"], "the type after the last colon"),
        ([":date"], "the name is missing"),
        ([" "], "the name is missing"),
        (["a", "a:date"], "'a' is declared twice"),
        (["a:date", "a:keyword"], "'a' is declared twice"),
        ([f"f{number}" for number in range(101)], "at most 100"),
        ("year", "must be a list"),
        ([1], "fields"),
    ],
)
def test_a_declaration_that_cannot_be_is_named(tmp_path, fields, reason):
    with pytest.raises(SettingsError, match=reason) as caught:
        build(RECORDS, name="a", home=tmp_path, fields=fields)
    assert caught.value.field == "fields"


def test_days_in_the_count_of_spreadsheets_are_reported(tmp_path, caplog):
    rows = [RECORDS[0] | {"Date": "45352", "Created": 45352.5833, "n": "45352"}]
    build(rows, name="a", home=tmp_path)
    found = [
        record.getMessage() for record in caplog.records if "spreadsheets" in record.getMessage()
    ]
    assert [message.split("'")[1] for message in found] == ["Created", "Date"]


def test_a_name_with_a_colon_is_declared_with_its_type(tmp_path):
    records = [RECORDS[0] | {"dc:date": "2024-03-01"}]
    index = build(records, name="a", home=tmp_path, fields=["dc:date:keyword"])
    assert index.fields["dc:date"].type == "keyword"


@pytest.mark.parametrize(
    ("values", "kind", "hint"),
    [
        (["1"] * 199 + ["soon"], "number", "1 document has another value, which counts as miss"),
        (["1"] * 19 + ["soon"], "keyword", "19 of 20 values are numbers, but not 'soon' in a.csv"),
        (["2026-03-01"] * 19 + ["x"], "keyword", "values are dates, but not 'x' in a.csv:21"),
        (["1"] * 19 + ["007"], "keyword", "but not '007' in a.csv:21"),
        (["1,024", "2,048"], "keyword", "'1,024' in a.csv:2 could be two numbers; --decimal comma"),
        (["3/5/2026"], "keyword", "'3/5/2026' in a.csv:2 could be two dates; --dates day-first"),
        (["¥1,234"], "keyword", "'¥1,234' in a.csv:2 could be two numbers; --decimal comma"),
        (["31/3/2026", "31/3/2026 x"], "keyword", "1 of 2 values are dates such as '31/3/2026' in"),
        (["1"] * 19 + ["N/A", ""], "number", None),
        (["1"] * 10 + ["a"] * 10, "keyword", None),
        (["red", "1,5"], "keyword", None),
        (["1.2.10"], "keyword", None),
    ],
)
def test_unexpected_types_are_reported_with_the_first_value(tmp_path, caplog, values, kind, hint):
    documents = [
        Document(id=str(n), origin=f"a.csv:{n + 2}", metadata={"x": value})
        for n, value in enumerate(values)
    ]
    with open_progress(None) as report:
        fields = read(
            OpenedCollection("a", "csv", DEFAULTS, lambda _: iter(documents)),
            tmp_path,
            Settings(),
            report,
            memory=2**28,
            processes=1,
        ).contents.fields
    assert fields.columns["x"].type == kind
    found = [record.getMessage() for record in caplog.records]
    assert len(found) == (hint is not None)
    assert hint is None or f"field 'x' is a {kind} field: " in found[0]
    assert hint is None or hint in found[0]
