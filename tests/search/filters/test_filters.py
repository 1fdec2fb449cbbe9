"""Filters in all three forms select the documents that a plain reading of the metadata does."""

import contextlib
import json
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.core.array_types import SortedTexts
from klsa_search.core.deadlines import deadline_check
from klsa_search.errors import QueryError
from klsa_search.search.costs import filter_cost
from klsa_search.search.engine.mask import PART, Mask
from klsa_search.search.filters.masks import FilterCache, absolute, mask_of
from klsa_search.search.filters.parser import (
    And,
    Condition,
    Not,
    Or,
    filter_of_mapping,
    filter_of_text,
    truth_of,
    without_field,
)
from tests.storage.columns.test_columns import written

METADATA = [
    {"year": 2021, "about": ["engines", "pumps"], "seen": "2024-02-01", "blank": " "},
    {"year": 2019.5, "about": "Pumps", "seen": "2024-03-05T12:00:00Z"},
    {"year": -3, "about": "old roads", "seen": ["2024-03-31T18:00:00Z", "2020-01-01"]},
    {"year": [1, 5], "about": "and"},
    {"seen": "2024-03-05"},
    {},
]
FIELDS = written(METADATA, {"year": "number", "about": "keyword", "seen": "date"})[1]
assert FIELDS.unfilterable == {"blank": "no value"}
SIZE = len(METADATA)
MANY = written(METADATA * 4, {"year": "number", "about": "keyword", "seen": "date"})[1]
YEARS = st.sampled_from([2021, 2019.5, -3, 1, 3, 5, 1e3])
WORDS = st.sampled_from(["engines", "pumps", "Pumps", "old roads", "and", "um", "'", '"', "\\", ""])
DATES = st.sampled_from(["2024-02-01", "2024-03-05", "2024-03-05T12:00:00Z", "2020-01-01"])
VALUES = {"year": YEARS, "about": WORDS, "seen": DATES, "blank": YEARS | WORDS}


@st.composite
def conditions(draw):
    name = draw(st.sampled_from(sorted(VALUES)))
    kinds = ["=", "IN", "EXISTS"]
    kinds += ["CONTAINS"] if name == "about" else ["<", "<=", ">", ">=", "TO"]
    kind = draw(st.sampled_from(kinds))
    counts = {"EXISTS": (0, 0), "IN": (0, 3), "TO": (2, 2)}.get(kind, (1, 1))
    low, high = counts
    values = draw(st.lists(VALUES[name], min_size=low, max_size=high))
    return Condition(name, kind, tuple(values))


def negated(tree):
    return tree.part if isinstance(tree, Not) else Not(tree)


def joined(children):
    parts = st.lists(children, min_size=2, max_size=3).map(tuple)
    return st.one_of(parts.map(And), parts.map(Or), children.map(negated))


TREES = st.recursive(conditions(), joined, max_leaves=8)


def span(name, value):
    """First and last of what equals a value: a date alone is its whole day."""
    if name == "seen":
        moment = np.datetime64(value.removesuffix("Z"), "us")
        return moment, moment + np.timedelta64(86_400_000_000 - 1 if len(value) == 10 else 0, "us")
    return value, value


def holds(tree, metadata):
    if isinstance(tree, And):
        return all(holds(part, metadata) for part in tree.parts)
    if isinstance(tree, Or):
        return any(holds(part, metadata) for part in tree.parts)
    if isinstance(tree, Not):
        return not holds(tree.part, metadata)
    held = metadata.get(tree.field, []) if tree.field != "blank" else []
    held = held if isinstance(held, list) else [held]
    if tree.comparison == "EXISTS":
        return bool(held)
    if tree.comparison == "CONTAINS":
        return any(tree.values[0].casefold() in text.casefold() for text in held)
    spans = [span(tree.field, value) for value in tree.values]
    moments = [span(tree.field, value)[0] for value in held]
    if tree.comparison in ("=", "IN"):
        return any(low <= value <= high for value in moments for low, high in spans)
    low, high = spans[0][0], spans[-1][1]
    return any(
        {
            "<": lambda value: value < spans[0][0],
            "<=": lambda value: value <= spans[0][1],
            ">": lambda value: value > spans[0][1],
            ">=": lambda value: value >= spans[0][0],
            "TO": lambda value: low <= value <= high,
        }[tree.comparison](value)
        for value in moments
    )


def quoted(value):
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_text(tree):
    if isinstance(tree, Not):
        return f"NOT ({as_text(tree.part)})"
    if isinstance(tree, And | Or):
        sign = " AND " if isinstance(tree, And) else " or "
        return "(" + sign.join(map(as_text, tree.parts)) + ")"
    values = [quoted(value) for value in tree.values]
    match tree.comparison:
        case "EXISTS":
            return f"{tree.field} exists"
        case "IN":
            return f"{tree.field} IN [{', '.join(values)}]"
        case "TO":
            return f"{tree.field} {values[0]} TO {values[1]}"
        case sign:
            return f"'{tree.field}' {sign} {values[0]}"


def as_mapping(tree):
    if isinstance(tree, Not):
        return {"not": as_mapping(tree.part)}
    if isinstance(tree, And | Or):
        parts = [as_mapping(part) for part in tree.parts]
        return {"and" if isinstance(tree, And) else "or": parts}
    values = list(tree.values)
    match tree.comparison:
        case "EXISTS":
            return {"field": tree.field, "exists": True}
        case "IN" | "TO":
            return {"field": tree.field, tree.comparison.lower(): values}
        case sign:
            return {"field": tree.field, sign.lower(): values[0]}


@given(TREES)
def test_a_filter_lets_through_what_a_reader_would(tree):
    expected = [holds(tree, metadata) for metadata in METADATA]
    assert mask_of(tree, FIELDS, SIZE).allowed.tolist() == expected
    with patch("klsa_search.search.engine.mask.PART", 8):  # parts that end within the documents
        assert mask_of(tree, MANY, 4 * SIZE).allowed.tolist() == 4 * expected
    masks = FilterCache(FIELDS, SIZE)
    written_json = json.dumps(as_mapping(tree))
    for form in (tree, as_text(tree), as_mapping(tree), json.loads(written_json), written_json):
        assert masks.of(form).allowed.tolist() == expected
        assert masks.of(form) is masks.of(form)
    assert filter_of_mapping(as_mapping(tree)) == tree


@given(st.text(st.sampled_from("ab01 ()[],=<>!\"'\\ANDORNOTINTOISNULL\n"), max_size=60))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(QueryError):
        filter_of_text(text)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("year = 2021", [0]),
        ("year != 2.021,0", [1, 2, 3, 4, 5]),
        ("year > 1 AND year < 2021 OR about = and", [1, 3]),
        ("about = 'and'", [3]),
        ("NOT year EXISTS", [4, 5]),
        ("year IS NULL", [4, 5]),
        ("year IS NOT NULL AND NOT about IN [Pumps, 'old roads']", [0, 3]),
        ("about NOT IN [engines] and about NOT CONTAINS ROADS", [1, 3, 4, 5]),
        ("seen = 2024-03-05", [1, 4]),
        ("seen > 2024-03-05", [2]),
        ("seen 2024-02-01 TO 2024-03-05", [0, 1, 4]),
        ("seen = 2024", [0, 1, 2, 4]),
        ("seen = 2024-03", [1, 2, 4]),
        ("seen <= 2024-02", [0, 2]),
        ("seen > 2023", [0, 1, 2, 4]),
        ("seen 2020 TO 2024-02", [0, 2]),
        ("seen IN [2020-01, 2024-02]", [0, 2]),
        ("seen < now-1y", [0, 1, 2, 4]),
        ("seen > now", []),
        ("not not year exists", [0, 1, 2, 3]),
        ("about IN []", []),
        ("year >= 2.021e3", [0]),
        ("year > " + "9" * 5000, []),
        ("year > -" + "9" * 5000, [0, 1, 2, 3]),
        ("year = " + "0" * 5000 + "2021", [0]),
        ("year > -1e3", [0, 1, 2, 3]),
        ("year < .5e1 or year > +2.0205e3", [0, 2, 3]),
        ("year == 2021 OR about == 'and'", [0, 3]),
        ("year <> 2021", [1, 2, 3, 4, 5]),
        ("year BETWEEN 2019 AND 2022 AND about IN (Pumps, engines)", [0, 1]),
        ("year NOT between -3 and 2020", [0, 4, 5]),
        ("about IN ()", []),
        (' {"field": "year", ">=": 2020}', [0]),
        ("about = 'pu''mps'", []),
        ('{"field": "year", "between": [2019, 2021], "<>": 2021}', [1]),
    ],
)
def test_worked_examples(text, ids):
    assert np.flatnonzero(mask_of(filter_of_text(text), FIELDS, SIZE).allowed).tolist() == ids


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "incomplete; expected one of NOT, (, a name or value"),
        ("year = ", "incomplete"),
        ("year = = 3", "'=' is not allowed at character 8"),
        ("(year = 3", "incomplete; expected )"),
        ("about LIKE 'pum%'", "'LIKE' is not an operator; write one of = != < <= > >= IN BETWEEN"),
        ("year ~ 3 AND seen EXISTS", "'~' is not an operator"),
        ("year = 3 AND about:pumps", "'about:pumps' is not a condition; write `about = pumps`"),
        ("year:[1 TO 3]", "'year:' is not a condition; write `year = value`"),
        ('about:"old roads"', 'is not a condition; write `about = "old roads"`'),
        ("about : pumps", "'about : pumps' is not a condition; write `about = pumps`"),
        ("year 10:30 3", "'10:30' is not an operator"),
        ('[{"field": "year", "=": 3}]', 'is not a filter; give {"and": [...]}'),
        ("about = http://a b", "'b' is not allowed at character 18; expected one of AND, OR"),
        ("title = old", "'title' is searched, not filterable; write title:word in the query"),
        ("yeer: = 3", "unknown field 'yeer:'; did you mean `year`? the filterable fields are"),
        ('{"field": "year"', "not valid JSON (Expecting ',' delimiter: line 1 column 17"),
        ("year = 3 4", "'4' is not allowed at character 10; expected one of AND, OR, the end"),
        ('about = "x', "the quote at character 9 is not closed; close it, or write \\ before it"),
        ("about = x!y", "'!y' at character 10 is not a name, value or operator"),
        ("a = 1" + " " * 10_000, "10,005 characters, more than the limit of 10,000"),
        ("brand = 3", "unknown field 'brand'; the filterable fields are: 'about', 'seen', 'year'"),
        ("year = old", "'year' is a number field: 'old' is not a number"),
        ("about < x", "'about' is a keyword field, which has no ranges"),
        ("year CONTAINS 2", "'year' is a number field, which cannot contain texts"),
        ("year IN [" + "1," * 1_000 + "1]", "more than 1,000 conditions and values"),
        (5, "filter = 5 is not a filter"),
        ({}, "{} is not a filter"),
        (
            {"brand": "Bosch"},
            """{'brand': 'Bosch'} is not a filter; give {"field": "brand", "=": "Bosch"}, in""",
        ),
        ({"gt": {"year": 3}}, """is not a filter; give {"and": [...]}"""),
        ({"exists": True}, """is not a filter; give {"and": [...]}"""),
        ({"filter": "year > 3"}, """is not a filter; give {"and": [...]}"""),
        ({"and": {}}, "'and' is {}; give a list of filters"),
        ({"and": [3]}, "3 is not a filter"),
        ({"field": "year"}, "has no comparison"),
        ({"field": 3, "=": 1}, "'field' is 3; give the name of a field"),
        ({"field": ["x" * 50] * 2}, "x', 'xxxx...; give the name of a field"),
        ({"field": "year", "~": 1}, "unknown comparison '~'"),
        ({"field": "year", "=": [1]}, "[1] is not a text, number, true or false"),
        ({"field": "year", "in": 1}, "1 is not a list of values"),
        ({"field": "year", "to": [1]}, "a list of two values, not 1"),
        ({"field": "year", "exists": 1}, "1 is neither true nor false"),
        ({"field": "year", "=": {1}}, "not valid JSON"),
        (
            "seen = 2024-13",
            "'2024-13' is not a date as in 2024, 2024-03, 2024-03-01, 2024-03-01T09:30:00Z, ",
        ),
        ("seen > now-7x", "'now-7x' is not a relative date; write now-7d"),
        ("seen > now-9999y", "'now-9999y' is before the year 1 or after 9999"),
    ],
)
def test_invalid_filters_are_explained(given, reason):
    with pytest.raises(QueryError) as caught:
        FilterCache(FIELDS, SIZE).of(given)
    assert caught.value.field == "filter"
    assert reason in caught.value.message


def test_depth_is_limited_and_never_recursion():
    assert filter_of_text("(" * 4_000 + "a = 1" + ")" * 4_000) == Condition("a", "=", ("1",))
    deep = "NOT (a = 1 AND " * 200 + "b = 2" + ")" * 200
    nested = {"field": "a", "=": 1}
    for _ in range(200):
        nested = {"and": [nested]}
    flat = Condition("a", "EXISTS")
    for _ in range(50_000):
        flat = Not(Not(flat))
    negations = {"field": "a", "=": 1}
    for _ in range(200):
        negations = {"not": negations}
    for tree in (deep, nested, negations, flat):
        with pytest.raises(QueryError, match="nested more than 100 levels deep"):
            FilterCache(FIELDS, SIZE).of(tree)


@pytest.mark.parametrize("operator", ["and", "not"])
def test_a_filter_in_json_may_have_a_hundred_levels(operator):
    nested = {"field": "year", "=": 1}
    for _ in range(99):
        nested = {operator: [nested] if operator == "and" else nested}
    filter_of_mapping(nested)
    with pytest.raises(QueryError, match="nested more than 100 levels deep"):
        filter_of_mapping({"and": [nested]})


def test_no_conditions_joined_by_and_allow_all_documents_of_every_part():
    assert mask_of(And(()), FIELDS, PART + 3).allowed.all()
    assert not mask_of(Or(()), FIELDS, PART + 3).allowed.any()


def test_a_list_with_values_depends_on_the_documents():
    assert truth_of(Condition("about", "IN", ("pumps",))) is None


def test_a_cached_mask_costs_nothing():
    masks = FilterCache(FIELDS, SIZE)
    assert filter_cost(masks, "about CONTAINS pump") > 0
    masks.of("about CONTAINS pump")
    assert filter_cost(masks, "about CONTAINS pump") == 0


def test_masks_are_forgotten_before_they_fill_the_memory(monkeypatch):
    monkeypatch.setattr("klsa_search.search.filters.masks.CACHE_SIZE", 3 * 2**11)
    masks = FilterCache(FIELDS, SIZE)
    first = masks.of("year = 1")
    for year in (2, 3):
        masks.of(f"year = {year}")
    assert masks.of("year = 1") is first
    for year in (4, 5, 6):
        masks.of(f"year = {year}")
    assert masks.of("year = 1") is not first


def test_a_filter_may_have_a_thousand_conditions_or_values():
    conditions = tuple(Condition("year", "=", (float(year),)) for year in range(999))
    values = tuple(map(float, range(1_000)))
    assert FilterCache(FIELDS, SIZE).of(Or(conditions)).size == 1  # the year 1, or 5
    assert FilterCache(FIELDS, SIZE).of(Condition("year", "IN", values)).size == 1
    with pytest.raises(QueryError, match="more than 1,000 conditions and values"):
        FilterCache(FIELDS, SIZE).of(Or((*conditions, *conditions[:1])))


@pytest.mark.parametrize("length", [21, 1_000])
def test_a_text_of_more_than_twenty_characters_is_cut_in_messages(length):
    with pytest.raises(QueryError, match=r"'x{20}\.\.\.' is not allowed at character 10"):
        filter_of_text("year = 1 " + "x" * length)


@pytest.mark.parametrize("comparison", ["=", "in", "to", "exists", "null", "odd"])
def test_messages_about_long_names_are_short(comparison):
    with pytest.raises(QueryError) as refused:
        filter_of_mapping({"field": "x" * 20_000, comparison: {}})
    assert len(refused.value.message) < 500


IDS = {"a": 0, "b b": 2, "7": 5}


def doc_ids(ids):
    return np.array([IDS[id_] for id_ in ids if id_ in IDS], np.int64)


@pytest.mark.parametrize(
    ("given", "documents"),
    [
        ("id = a", [0]),
        ('id IN [a, "b b", unknown]', [0, 2]),
        ("id = unknown", []),
        ("id != a AND year EXISTS", [1, 2, 3]),
        ({"field": "id", "=": 7}, [5]),
        ({"field": "id", "in": ["a", "7"]}, [0, 5]),
    ],
)
def test_ids_of_documents(given, documents):
    mask = FilterCache(FIELDS, SIZE, doc_ids).of(given)
    assert np.flatnonzero(mask.allowed).tolist() == documents


def test_ids_are_found_in_every_range_of_a_large_mask():
    places = {"first": 3, "later": 500_003, "last": 999_999}

    def find(ids):
        return np.array([places[id_] for id_ in ids], np.int64)

    mask = FilterCache(FIELDS, 1_000_000, find).of("id IN [last, first, later]")
    assert np.flatnonzero(mask.allowed).tolist() == [3, 500_003, 999_999]


def test_ids_are_only_compared_with_values():
    with pytest.raises(QueryError, match="with = and IN only"):
        FilterCache(FIELDS, SIZE, doc_ids).of("id CONTAINS a")


def test_a_field_named_id_is_metadata():
    fields = written([{"id": "x"}, {"id": "y"}], {"id": "keyword"})[1]
    assert FilterCache(fields, 2, doc_ids).of("id = y").allowed.tolist() == [False, True]


def test_filters_stop_at_a_condition_when_their_deadline_has_passed():
    steps = []

    def check():
        steps.append(None)
        if len(steps) == 5:
            raise TimeoutError

    cache = FilterCache(FIELDS, SIZE)
    given = " OR ".join(f"about CONTAINS {number}" for number in range(10))
    with deadline_check(check), pytest.raises(TimeoutError):
        cache.of(given)
    assert cache.of(given).size == 0


def test_texts_are_folded_once(monkeypatch):
    fields = written([{"x": "Red"}, {"x": "GREEN"}], {"x": "keyword"})[1]
    assert fields["x"].containing("re").tolist() == [True, True]

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(SortedTexts, "__iter__", refuse)
    assert fields["x"].containing("gre").tolist() == [False, True]
    assert fields["x"].containing("edG").tolist() == [False, False]


def test_filters_that_depend_on_no_document_are_known():
    nothing, something = Condition("x", "IN"), Condition("x", "=", ("a",))
    for filter_, truth in (
        (something, None),
        (Not(something), None),
        (nothing, False),
        (Not(nothing), True),
        (And(()), True),
        (Or(()), False),
        (And((something, nothing)), False),
        (Or((something, Not(nothing))), True),
        (And((something, And(()))), None),
        (Or((Or(()), nothing)), False),
    ):
        assert truth_of(filter_) is truth


@pytest.mark.parametrize(
    ("relative", "expected"),
    [
        ("now", "2024-03-31T09:30:00"),
        ("now-90s", "2024-03-31T09:28:30"),
        ("now+2h-5m", "2024-03-31T11:25:00"),
        ("now-7d", "2024-03-24T09:30:00"),
        ("now-1w/d", "2024-03-24"),
        ("now-1M", "2024-02-29T09:30:00"),
        ("now-13M/M", "2023-02"),
        ("now+9M", "2024-12-31T09:30:00"),
        ("now/y", "2024"),
        ("now-2000y/y", "0024"),
    ],
)
def test_relative_dates(relative, expected):
    assert absolute(relative, datetime(2024, 3, 31, 9, 30)) == expected


def test_a_relative_date_is_of_the_moment_of_the_search(monkeypatch):
    soon = (datetime.now(UTC) + timedelta(days=10)).strftime("%Y-%m-%d")
    fields = written([{"due": soon, "word": "now"}, {"due": "2020-01-01", "word": "now-7d"}], {})[1]
    masks = FilterCache(fields, 2)
    given = {"field": "due", ">=": "now", "<": "now+20d"}
    assert masks.of(given).allowed.tolist() == [True, False]
    assert masks.of("due > now-5d/d").allowed.tolist() == [True, False]
    assert masks.of("word = now-7d").allowed.tolist() == [False, True]  # a keyword
    # A cached mask is of its second only.
    first = masks.of("due > now")
    monkeypatch.setattr("klsa_search.search.filters.masks.time.time", lambda: 1.0)
    assert masks.of("due > now") is not first
    assert masks.of(r'due > "n\ow"') is masks.of(r'due > "n\ow"')
    constant = masks.of(r'word = "C:\\temp"')
    escaped = masks.of(r'due > "n\ow"')
    monkeypatch.setattr("klsa_search.search.filters.masks.time.time", lambda: 9.0)
    assert masks.of(r'due > "n\ow"') is not escaped
    assert masks.of(r'word = "C:\\temp"') is constant


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("year = 1", None),
        ("year = 1 AND NOT year = 2", None),
        ("about = a", "about = a"),
        ("year = 1 OR about = a", "year = 1 OR about = a"),
        ("year = 1 AND about = a", "about = a"),
        ("year = 1 AND about = a AND seen = b", "about = a AND seen = b"),
    ],
)
def test_a_filter_without_a_field_keeps_the_parts_about_others(text, left):
    assert without_field(filter_of_text(text), "year") == (left and filter_of_text(left))


def test_a_year_of_a_date_field_may_be_a_number():
    given = filter_of_mapping({"field": "seen", "=": 2024})
    assert np.flatnonzero(mask_of(given, FIELDS, SIZE).allowed).tolist() == [0, 1, 2, 4]


def test_a_later_state_tests_only_later_documents():
    tested = []

    def is_even(first, after):
        tested.append((first, after))
        return np.arange(first, after) % 2 == 0

    before = Mask.from_ranges(is_even, 21)
    mask = Mask.from_ranges(is_even, 30, before)
    assert tested == [(0, 21), (16, 30)]
    assert np.flatnonzero(mask.allowed).tolist() == [*range(0, 30, 2)]


def test_an_earlier_state_does_not_use_masks_of_a_later_one():
    earlier = FilterCache(FIELDS, SIZE, doc_ids)
    later = FilterCache(FIELDS, SIZE, lambda _: np.zeros(0, np.int64), earlier)  # all deleted
    assert not later.of("id = a").size
    assert earlier.of("id = a").size == 1
    mask = earlier.of("id = 7")
    assert later.of("id = 7") is mask  # searches return live documents only
    assert earlier.extended().of("id = 7") is mask
