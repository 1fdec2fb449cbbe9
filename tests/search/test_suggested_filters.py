"""Filters that a search suggests: values in another case, and words that are values of fields."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.search.filters.parser import Condition, Not, filter_of_text, text_of
from klsa_search.search.pages.suggested_filters import MAX_MATCHES
from klsa_search.search.pages.typed_conditions import RANGE, SIGN
from klsa_search.search.query.interpretation import filter_notes
from klsa_search.storage.columns import column, columns

BRANDS = ["Bosch", "Bosch", "Makita", "Black & Decker", "BOSCH", "Čapek"]
DOCUMENTS = [
    {
        "id": f"P-{number}",
        "title": "cordless drill",
        "text": "with a battery",
        "brand": brand,
        "tags": ["Power Tools", "to"],
    }
    for number, brand in enumerate(BRANDS)
]
OTHER = {"id": "X", "title": "case", "text": "a case that fits makita drills", "brand": "Ryobi"}


@pytest.fixture(scope="module", params=[1, 2, 0])
def index(request, tmp_path_factory):
    """An index of one part, of two, and of one whose documents came later."""
    home = tmp_path_factory.mktemp("home")
    built = [*DOCUMENTS, OTHER] if request.param else [OTHER]
    with build(built, name="a", home=home, partitions=request.param or 1) as index:
        if not request.param:
            index.add(DOCUMENTS)
        yield index


def suggested(index, query="drill", **options):
    return index.search(query, **options).interpretation.suggested_filters


@pytest.mark.parametrize(
    ("filter_", "suggestion"),
    [
        ("brand = bosch", {"brand = bosch": {"brand = Bosch": 2, "brand = BOSCH": 1}}),
        ("brand IN [makita, Bosch]", {"brand = makita": {"brand = Makita": 1}}),
        ("NOT (brand != makita OR tags EXISTS)", {"brand = makita": {"brand = Makita": 1}}),
        ("brand != bosch", {}),
        ("NOT brand = bosch", {}),
        ("tags EXISTS AND NOT (brand IN [makita, Bosch] OR brand = bosch)", {}),
        ({"field": "brand", "=": "capek"}, {"brand = capek": {"brand = Čapek": 1}}),
        (
            "id = p-1 OR brand = 'black&decker'",
            {
                "id = p-1": {"id = P-1": 1},
                "brand = black&decker": {'brand = "Black & Decker"': 1},
            },
        ),
        ("tags = 'power tools'", {'tags = "power tools"': {'tags = "Power Tools"': 6}}),
        ("tags = TO", {'tags = "TO"': {'tags = "to"': 6}}),
        ("brand = Bosch OR brand = BOSCH OR id = P-1", {}),
        ("brand = Milwaukee OR id = Y OR brand CONTAINS bosch OR tags EXISTS", {}),
    ],
)
def test_a_condition_is_reported_if_only_another_case_of_its_value_occurs(
    index, filter_, suggestion
):
    assert suggested(index, filter=filter_) == suggestion


def test_a_suggested_condition_is_a_filter(index):
    for written in ("brand = 'black & decker'", "tags = To"):
        ((conditions),) = suggested(index, filter=written).values()
        ((condition, count),) = conditions.items()
        assert index.search("", filter=condition).total == count


@pytest.mark.parametrize(
    ("query", "suggestion"),
    [
        ("ČAPEK drill", {"ČAPEK": {"brand = Čapek": 1}}),
        ("a drill, bosch!", {"bosch": {"brand = Bosch": 2, "brand = BOSCH": 1}}),
        ("black & decker drill", {"black & decker": {'brand = "Black & Decker"': 1}}),
        ("power tools", {"power tools": {'tags = "Power Tools"': 6}}),
        ("brand:bosch drill", {"brand:bosch": {"brand = Bosch": 2, "brand = BOSCH": 1}}),
        ('brand:"black & decker"', {'brand:"black & decker"': {'brand = "Black & Decker"': 1}}),
        ("makita drill", {}),  # as many documents contain the word
        ("drill to -bosch", {}),
        ("drill -brand:bosch", {}),
        ('drill -brand:"black & decker" ČAPEK', {"ČAPEK": {"brand = Čapek": 1}}),
        ("drill NOT bosch", {}),
        ("drill not bosch", {}),
        ("Drill ohne Bosch", {}),
        ("drill not makita ČAPEK", {"ČAPEK": {"brand = Čapek": 1}}),
        ("drill NOT brand:bosch", {}),
        ("drill AND NOT (bosch OR makita)", {}),
        ("bosch NOT makita", {"bosch": {"brand = Bosch": 2, "brand = BOSCH": 1}}),
        ("power OR tools", {}),
        ("+power -case tools", {}),
        ("+brand:bosch drill", {"+brand:bosch": {"brand = Bosch": 2, "brand = BOSCH": 1}}),
        ("bosch " + "drill " * 12, {}),
        ("X", {}),
    ],
)
def test_a_word_is_reported_if_it_is_a_value_of_more_documents(index, query, suggestion):
    assert suggested(index, query) == suggestion


@pytest.mark.parametrize("query", ["black  & decker drill", 'brand:"black  & decker"'])
def test_a_note_says_that_words_with_several_blanks_are_of_the_query(index, query):
    said = index.search(query).interpretation
    (note,) = filter_notes(said, query)
    assert " of a field; filter by " in note or " on a field; filter by " in note


def test_a_field_that_the_filter_names_is_not_suggested(index):
    for filter_ in ("brand = Makita", "brand != Bosch", "brand CONTAINS bos"):
        assert suggested(index, "bosch", filter=filter_) == {}


def test_suggestions_are_of_live_documents_that_may_be_seen(tmp_path):
    documents = [{"id": str(n), "text": "drill", "brand": b} for n, b in enumerate(BRANDS)]
    with build(documents, name="a", home=tmp_path) as index:
        view = index.restricted("brand != BOSCH")
        assert suggested(view, filter="brand = bosch") == {"brand = bosch": {"brand = Bosch": 2}}
        assert suggested(view, filter="brand = BOSCH") == {"brand = BOSCH": {"brand = Bosch": 2}}
        index.add([{"id": "4", "text": "drill", "brand": "bosch"}])
        assert suggested(index, filter="brand = BOSCH") == {
            "brand = BOSCH": {"brand = Bosch": 2, "brand = bosch": 1}
        }
        index.delete(["0", "1", "4"])
        assert suggested(index, filter="brand = bosch") == {}


def test_a_declared_field_in_the_query_is_a_condition(tmp_path):
    documents = [{"id": str(n), "text": "drill", "brand": b} for n, b in enumerate(BRANDS)]
    with build(documents, name="a", home=tmp_path, fields=["brand:keyword"]) as index:
        assert suggested(index, "brand:makita") == {"brand:makita": {"brand = Makita": 1}}
        assert suggested(index, "brand:Makita") == {}


def test_words_of_fields_of_many_texts_are_not_looked_up(tmp_path):
    documents = [{"id": str(n), "text": "drill", "serial": f"S{n:08}"} for n in range(8_000)]
    with build(documents, name="a", home=tmp_path) as index:
        assert suggested(index, "s00000001 drill") == {}
        assert suggested(index, filter="serial = s00000001") == {
            "serial = s00000001": {"serial = S00000001": 1}
        }


def test_words_are_looked_up_once_however_many_fields_there_are(tmp_path, monkeypatch):
    names = [f"f{number}" for number in range(100)]
    documents = [
        {"id": str(n), "text": "drill bit", **{name: f"{name} V{n}" for name in names}}
        for n in range(50)
    ]
    with build(documents, name="a", home=tmp_path) as index:
        assert not index.is_quick("drill")  # until the values of 100 fields are read
        assert suggested(index, "f7v3 drill bit") == {"f7v3": {'f7 = "f7 V3"': 1}}
        assert index.is_quick("drill")
        keys, key_of = [], columns.key_of
        monkeypatch.setattr(columns, "key_of", lambda text: keys.append(text) or key_of(text))
        monkeypatch.setattr(column, "key_of", columns.key_of)
        assert suggested(index, "f9 v3 drill") == {"f9 v3": {'f9 = "f9 V3"': 1}}
        assert len(keys) <= 6
        index.add([{"id": "x", "text": "drill", "f9": "F9 v3"}])
        assert suggested(index, "f9 v3") == {"f9 v3": {'f9 = "f9 V3"': 1, 'f9 = "F9 v3"': 1}}


@pytest.mark.parametrize("partitions", [1, 3])
def test_words_that_are_many_values_suggest_none_rather_than_some_with_part_of_their_counts(
    tmp_path, partitions
):
    names = [f"f{number:02}" for number in range(MAX_MATCHES + 1)]
    documents = [{"id": f"{n}", "text": "drill", names[n]: "Yes"} for n in range(len(names))]
    few = dict.fromkeys(names[1:], "Maybe")
    documents += [{"id": f"x{n}", "text": "drill", **few} for n in range(9)]
    with build(documents, name="a", home=tmp_path, partitions=partitions) as index:
        assert suggested(index, "yes drill") == {}
        conditions = suggested(index, "maybe drill")["maybe"]
        assert conditions == {f"{name} = Maybe": 9 for name in names[1:]}


def test_a_filter_whose_value_many_texts_may_be_like_is_not_quick(tmp_path):
    documents = [{"id": str(n), "text": "drill", "serial": f"S{n}"} for n in range(1_100)]
    with build(documents, name="a", home=tmp_path) as index:
        assert index.is_quick("drill", 1)
        assert not index.is_quick("drill", 1, filter="serial = s1")
        assert suggested(index, filter="serial = s2") == {"serial = s2": {"serial = S2": 1}}
        assert index.is_quick("drill", 1, filter="serial = s1")


PRICED = [
    {
        "id": f"P-{number}",
        "text": "laptop on sale in March",
        "price": 100 * number,
        "brand": BRANDS[number],
        "Opened on": f"2024-0{number + 1}-15",
    }
    for number in range(len(BRANDS))
]


@pytest.fixture(scope="module", params=[1, 2])
def priced(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with build(PRICED, name="a", home=home, partitions=request.param, workers=1) as index:
        yield index


@pytest.mark.parametrize(
    ("query", "suggestion"),
    [
        ("price > 100", {"price > 100": {"price > 100": 4}}),
        ("laptop price<100", {"price<100": {"price < 100": 1}}),
        ("laptop PRICE ≥ 300 €", {"PRICE ≥ 300 €": {"price >= 300": 3}}),
        ("price > 900", {"price > 900": {"price > 900": 0}}),
        ("price != 0", {"price != 0": {"price != 0": 5}}),
        ("price:100", {"price:100": {"price = 100": 1}}),
        ("price:>=100", {"price:>=100": {"price >= 100": 5}}),
        ("price:100..300 laptop", {"price:100..300": {"price 100 TO 300": 3}}),
        ("price 100..300", {"price 100..300": {"price 100 TO 300": 3}}),
        ("price:[100 TO *]", {"price:[100 TO *]": {"price >= 100": 5}}),
        ("price = ..100", {"price = ..100": {"price <= 100": 2}}),
        ("brand = bosch", {"brand = bosch": {"brand = Bosch": 2, "brand = BOSCH": 1}}),
        ("brand = Bosch laptop", {"brand = Bosch": {"brand = Bosch": 2}}),
        ('brand="Black & Decker"', {'brand="Black & Decker"': {'brand = "Black & Decker"': 1}}),
        ("brand != Bosch", {"brand != Bosch": {"brand != Bosch": 4}}),
        (
            "price > 100 AND Opened on < 2024-05-01",
            {
                "price > 100": {"price > 100": 4},
                "Opened on < 2024-05-01": {'"Opened on" < 2024-05-01': 4},
            },
        ),
        ("opened on >= April 2024", {"opened on >= April 2024": {'"Opened on" >= 2024-04': 3}}),
        ("laptop 15.03.2024", {"15.03.2024": {'"Opened on" = 2024-03-15': 1}}),
        ("from 2024-03-15, laptop", {"2024-03-15": {'"Opened on" = 2024-03-15': 1}}),
        ("laptop März 2024?", {"März 2024": {'"Opened on" = 2024-03': 1}}),
        ("16.03.2024", {}),
        ("price > cheap", {}),
        ("brand > a", {}),
        ("x > 5 price", {}),
        ("laptop -price:100", {}),
        ("http://price:80", {}),
        ("price > 100 " + "laptop " * 12, {}),
    ],
)
def test_a_condition_that_is_typed_as_words_is_reported(priced, query, suggestion):
    said = priced.search(query, spelling="off").interpretation
    assert said.suggested_filters == suggestion
    assert said.relaxed == {}
    for conditions in suggestion.values():
        for condition, count in conditions.items():
            assert priced.search("", filter=condition).total == count


def test_a_condition_on_a_field_that_the_filter_names_is_not_reported(priced):
    assert suggested(priced, "price > 100", filter="price < 500") == {}
    assert suggested(priced, "laptop 15.03.2024", filter='"Opened on" > 2024') == {}


def test_a_note_says_that_a_condition_is_one(priced):
    said = priced.search("price:100..300").interpretation
    assert filter_notes(said, "price:100..300") == [
        "`price:100..300` is a condition on a field; filter by `price 100 TO 300` (3 documents)"
    ]


def test_signs_begin_before_all_blanks_so_that_reading_is_linear():
    starts = [sign.start() for sign in SIGN.finditer("a   b   = 3   : 4   5..6")]
    assert starts == [5, 11, 17]
    assert RANGE.match("=" + " " * 50 + "x") is None


TEXTS = st.text("abc \"'=<>!.:1-\\", min_size=1, max_size=8).filter(str.strip)


@given(TEXTS, TEXTS, TEXTS, st.sampled_from(["=", "!=", "<", ">=", "TO"]))
def test_a_condition_in_text_form_is_read_as_itself(field, value, high, comparison):
    negated = comparison == "!="
    values = (value, high) if comparison == "TO" else (value,)
    condition = Condition(field, "=" if negated else comparison, values)
    filter_ = Not(condition) if negated else condition
    assert filter_of_text(text_of(filter_)) == filter_


@given(st.text("price =<>:.[]TO15-\"'", max_size=20))
def test_any_query_has_suggestions(priced, query):
    for conditions in suggested(priced, query).values():
        assert list(conditions)
