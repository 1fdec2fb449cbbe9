"""Filters that a search suggests: values in another case, and words that are values of fields."""

import pytest

from klsa_search import build

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
        ("NOT brand IN [makita, Bosch]", {"brand = makita": {"brand = Makita": 1}}),
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
        ("bosch " + "drill " * 12, {}),
        ("X", {}),
    ],
)
def test_a_word_is_reported_if_it_is_a_value_of_more_documents(index, query, suggestion):
    assert suggested(index, query) == suggestion


def test_a_field_that_the_filter_names_is_not_suggested(index):
    assert suggested(index, "bosch", filter="brand = Makita") == {}


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
