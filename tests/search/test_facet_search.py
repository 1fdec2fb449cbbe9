"""Facet search: values of a field that contain typed text, with their counts."""

import pytest

from klsa_search import build
from klsa_search.errors import QueryError
from klsa_search.search.facet_search import facet_search

SHOPS = [
    {
        "id": "1",
        "text": "A red lamp.",
        "brand": "Étoile",
        "sizes": ["small", "large"],
        "year": 2020,
    },
    {"id": "2", "text": "A blue lamp.", "brand": "étoile", "sizes": ["small"], "year": 2021},
    {"id": "3", "text": "A red chair.", "brand": "Bel Etage", "sizes": ["x-large"], "year": 2021},
    {"id": "4", "text": "A red table.", "brand": "Bel Etage", "year": 1998},
    {"id": "5", "text": "A green table.", "brand": "Nord"},
    {"id": "6", "text": "A plain table."},
]


@pytest.fixture(scope="module")
def index(index_of):
    fields = ["brand:keyword", "sizes:keyword", "year:number"]
    return index_of(SHOPS, fields=fields, language="french")


@pytest.mark.parametrize(
    ("field", "typed", "values"),
    [
        ("brand", "et", [("Étoile", 1), ("étoile", 1), ("Bel Etage", 2)]),  # begins with it first
        ("brand", "ÉTA", [("Bel Etage", 2)]),
        ("brand", "", [("Bel Etage", 2), ("Nord", 1), ("Étoile", 1), ("étoile", 1)]),
        ("brand", " nord ", [("Nord", 1)]),
        ("brand", "south", []),
        ("sizes", "large", [("large", 1), ("x-large", 1)]),
        ("year", "20", [(2021, 2), (2020, 1)]),
    ],
)
def test_values_contain_the_text_without_case_and_accents(index, field, typed, values):
    assert list(facet_search(index, field, typed).values) == values


def test_counts_are_those_of_filter_and_query(index):
    assert facet_search(index, "brand", "e", filter="year >= 2021").values == (
        ("étoile", 1), ("Bel Etage", 1),
    )  # fmt: skip
    assert facet_search(index, "brand", "e", query="+lamp").values == (("Étoile", 1), ("étoile", 1))
    both = facet_search(index, "brand", "e", query="+red", filter={"field": "year", ">": 2000})
    assert both.values == (("Étoile", 1), ("Bel Etage", 1))
    for given in ({"filter": "year >= 2021"}, {"query": "red"}):
        query = given.get("query", "")
        counted = index.search(query, filter=given.get("filter"), facets=["brand"]).facets["brand"]
        assert facet_search(index, "brand", "", **given) == counted


def test_further_values_are_counted(index):
    facet = facet_search(index, "brand", "", 1)
    assert (facet.values, facet.other_count, facet.missing) == ((("Bel Etage", 2),), 3, 1)
    assert facet_search(index, "brand", "et", 2).other_count == 1


def test_an_unknown_field_is_named(index):
    with pytest.raises(QueryError, match="unknown field 'colour'") as refused:
        facet_search(index, "colour", "")
    assert refused.value.field == "field"


def test_a_field_without_values_is_known_until_it_has_one(tmp_path):
    rows = [{"id": n, "text": "A red lamp.", "note": ""} for n in "ab"]
    with build(rows, name="blank", home=tmp_path) as blank:

        def seen():
            found = blank.search("lamp", sort=["note"], facets=["note"], distinct="note")
            assert found.total == len(blank)
            counted = facet_search(blank, "note", "").values
            passing = [hit.id for hit in blank.search("lamp", filter="note > 3")]
            return found.facets["note"].values, found.facets["note"].missing, counted, passing

        assert seen() == ((), 2, (), [])
        blank.add([{"id": "c", "text": "A red lamp.", "note": 5}])
        assert seen() == (((5.0, 1),), 2, ((5.0, 1),), ["c"])
        blank.delete(["c"])
        assert seen() == ((), 2, (), [])
