"""Metadata columns: against a plain model in Python, and worked examples."""

import math
import operator
import tempfile
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.collection import Document
from klsa_search.errors import CollectionError, QueryError
from klsa_search.storage.columns import values as limits
from klsa_search.storage.columns import writer
from klsa_search.storage.columns.column import Column
from klsa_search.storage.columns.columns import open_fields, ranges_of
from klsa_search.storage.columns.declared import DeclaredFields
from klsa_search.storage.columns.values import Limits, TypeMismatch, as_number, number
from klsa_search.storage.columns.writer import FieldsWriter
from tests.support.examples import one_in

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def written(metadata, types=None, *, known=None, batch=3):
    """Write the fields of documents; returns what is said of them, and the columns."""
    documents = [Document(id=str(at), metadata=each) for at, each in enumerate(metadata)]
    declared = DeclaredFields(types or {})
    with tempfile.TemporaryDirectory() as folder:
        writer = FieldsWriter(declared.types, known or {})
        for begin in range(0, len(documents), batch):
            some = documents[begin : begin + batch]
            assert [declared.fault(document.metadata) for document in some] == [None] * len(some)
            writer.extend(some)
        batches = [metadata[begin : begin + batch] for begin in range(0, len(metadata), batch)]
        said = writer.finish(Path(folder), lambda: batches)
        return said, open_fields(Path(folder), said, len(documents))


def column(values, kind=None):
    """The column of one field, of which None stands for documents without it."""
    metadata = [{} if value is None else {"x": value} for value in values]
    return written(metadata, {"x": kind} if kind else None)[1]["x"]


def in_parts(find, size, step):
    """A mask whose parts of so many positions were made one by one."""
    assert find(size, size).tolist() == []
    parts = [find(first, min(first + step, size)).tolist() for first in range(0, size, step)]
    return [each for part in parts for each in part]


def positions(mask):
    return np.flatnonzero(mask).tolist()


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
NUMBERS = st.one_of(
    st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.sampled_from([0.0, -0.0, 1, 1.5])
)
MOMENTS = st.datetimes(
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(-timedelta(hours=11))])
)
MISSING = st.sampled_from([None, math.nan, [], [None], [math.nan, None]])


def fields_of(values):
    """Metadata of some documents with a field that holds such values, alone or in lists."""
    own = st.one_of(values, st.lists(values, max_size=3), MISSING)
    return st.lists(st.one_of(st.just({}), st.builds(lambda value: {"x": value}, own)), max_size=12)


def model(metadata, take):
    """Values of each document, as the column should have them."""
    found = []
    for each in metadata:
        value = each.get("x")
        held = value if isinstance(value, list) else [value]
        found.append({take(one) for one in held if one is not None and one == one})
    return found


def agrees(field, expected):
    """The arrays of a column hold what the model says."""
    assert len(field) == len(expected)
    assert field.missing == sum(not own for own in expected)
    assert field.present().tolist() == [bool(own) for own in expected]
    assert (field.starts is not None) == any(len(own) > 1 for own in expected)
    if field.starts is None:
        held = [[value] if own else [] for value, own in zip(field.values, expected, strict=True)]
    else:
        held = np.split(field.values, field.starts[1:-1])
    named = [[field.texts[code] for code in own] if field.texts else list(own) for own in held]
    assert named == [sorted(own) for own in expected]


@given(fields_of(TEXTS), st.lists(TEXTS, max_size=3), st.integers(1, 5))
def test_keywords(metadata, asked, batch):
    said, fields = written(metadata, {"x": "keyword"}, batch=batch)
    expected = [{text for text in own if text.strip()} for own in model(metadata, str)]
    agrees(fields["x"], expected)
    every = set().union(*expected)
    assert fields["x"].texts[:] == sorted(every)
    assert said.columns["x"].texts == len(every)
    asked += sorted(every)[:2]
    assert fields["x"].any_of(asked).tolist() == [bool(own & set(asked)) for own in expected]
    for text in asked:
        assert fields["x"].equal(text).tolist() == [text in own for own in expected]
        wanted = text.casefold()
        found = [any(wanted in each.casefold() for each in own) for own in expected]
        assert fields["x"].containing(text).tolist() == found
        matching = ranges_of(fields["x"], Column.containing, text)
        assert in_parts(matching, len(expected), batch) == fields["x"].containing(text).tolist()
    some = ranges_of(fields["x"], Column.any_of, asked)
    assert in_parts(some, len(expected), batch) == fields["x"].any_of(asked).tolist()


@given(fields_of(NUMBERS), st.lists(NUMBERS, min_size=2, max_size=4), st.integers(1, 5))
def test_numbers(metadata, asked, batch):
    _, fields = written(metadata, {"x": "number"}, batch=batch)
    expected = model(metadata, float)
    agrees(fields["x"], expected)
    low, high = asked[:2]
    among = [any(low <= value <= high for value in own) for own in expected]
    assert fields["x"].between(low, high).tolist() == among
    inside = ranges_of(fields["x"], Column.between, low, high)
    assert in_parts(inside, len(expected), batch) == among
    assert fields["x"].between().tolist() == [bool(own) for own in expected]
    assert in_parts(ranges_of(fields["x"], Column.present), len(expected), batch) == list(
        map(bool, expected)
    )
    for inclusive in ("low", "high", "neither"):
        above = operator.ge if inclusive == "low" else operator.gt
        below = operator.le if inclusive == "high" else operator.lt
        assert fields["x"].between(low, high, inclusive=inclusive).tolist() == [
            any(above(value, low) and below(value, high) for value in own) for own in expected
        ]
        assert fields["x"].between(None, high, inclusive=inclusive).tolist() == [
            any(below(value, high) for value in own) for own in expected
        ]
    assert fields["x"].between(low).tolist() == [any(v >= low for v in own) for own in expected]
    assert fields["x"].between(None, high).tolist() == [
        any(value <= high for value in own) for own in expected
    ]
    asked += [value for own in expected for value in own][:2]
    assert fields["x"].any_of(asked).tolist() == [bool(own & set(asked)) for own in expected]


@given(fields_of(MOMENTS), MOMENTS, MOMENTS, st.dates())
def test_dates(metadata, low, high, day):
    def told(value):
        return value if value is None or value != value else value.isoformat()

    def as_json(each):
        value = each["x"]
        return {"x": [told(one) for one in value] if isinstance(value, list) else told(value)}

    _, fields = written([each and as_json(each) for each in metadata], {"x": "date"})
    expected = model(metadata, lambda moment: (moment - EPOCH) // timedelta(microseconds=1))
    agrees(fields["x"], expected)
    moments = model(metadata, lambda moment: moment)
    for first, last in ((low, high), (low.isoformat(), high.isoformat())):
        assert fields["x"].between(first, last).tolist() == [
            any(low <= moment <= high for moment in own) for own in moments
        ]
        up_to = ranges_of(fields["x"], Column.between, None, last)
        assert in_parts(up_to, len(moments), 2) == [
            any(moment <= high for moment in own) for own in moments
        ]
    assert fields["x"].any_of([low, high, day.isoformat()]).tolist() == [
        any(m in (low, high) or _day(m) == day for m in own) for own in moments
    ]


def _day(moment):
    """Its day in UTC; none for the hours that lie in no year."""
    try:
        return moment.astimezone(UTC).date()
    except OverflowError:
        return None


VALUES = st.one_of(TEXTS, NUMBERS, st.booleans(), MISSING, st.just([["a"]]))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=8))
def test_the_detected_type_does_not_depend_on_batches(metadata):
    said, fields = written(metadata, batch=3)
    assert (said, _content(fields)) == _said_and_content(written(metadata, batch=100))
    assert (said, _content(fields)) == _said_and_content(written(metadata, batch=1))
    assert sorted([*said.columns, *said.others]) == sorted({name for m in metadata for name in m})
    assert list(fields) == list(said.columns) == sorted(fields)
    for name, field in fields.items():
        values = [v for m in metadata for v in limits.elements(m.get(name))]
        take = limits.coercion(field.type, declared=False)
        fits = [value for value in values if _fits(take, value)]
        numbers = any(type(value) in (int, float) for value in values)
        assert field.type == "number" or not numbers
        others = [v for v in values if not _fits(take, v) and not limits.is_placeholder(v)]
        assert len(fits) > len(others) if numbers else not others


def _fits(take, value):
    try:
        take(value)
    except limits.TypeMismatch:
        return False
    return True


def _said_and_content(result):
    said, fields = result
    return said, _content(fields)


def _content(fields):
    return [
        (
            name,
            field.values.tobytes(),
            None if field.starts is None else field.starts.tolist(),
            field.texts[:],
        )
        for name, field in fields.items()
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b", None], "keyword"),
        ([True, False], "keyword"),
        (["a", True], "keyword"),
        (["00123", "5"], "keyword"),
        (["+49 170 1234", "5"], "keyword"),
        (["9007199254740993", "5"], "keyword"),
        (["3.10", "3.10.1"], "keyword"),
        (["N/A", ""], "keyword"),
        (["5.5", "10", " 7 ", ""], "number"),
        (["0.5", "-0", "-1e3", "0"], "number"),
        (["5", "n/a", "-", "NULL"], "number"),
        ([1, "1"], "number"),
        ([5, 6, "free"], "number"),
        ([5, {"a": 1}, 6], "number"),
        (["2024-03-01", "N/A"], "date"),
        (["2024-03-01", ".", ".."], "date"),
        (["5", "#NUM!", ":"], "number"),
        ([["a", "b"], "c"], "keyword"),
        (["01234", "2024"], "keyword"),
        (["2024-03-01", "unknown"], "keyword"),
        (["2024-03-01", "", None], "date"),
        ([["2024-03-01", "2024-03-01T10:00Z"]], "date"),
        ([1, 2.5, None], "number"),
        ([math.inf, -math.inf, math.nan], "number"),
        ([2**53, 2**60], "number"),
        (["Straße", "猫", "\0"], "keyword"),
    ],
)
def test_types_that_are_found(values, kind):
    assert column(values).type == kind


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1, "one"], "numbers and texts"),
        (["", " "], "no value"),
        ([True, 1], "true or false and numbers"),
        ([[["a"]]], "nested values"),
        ([["a", 1]], "texts and numbers"),
        ([None, math.nan, []], "no value"),
        ([2**53 + 1], "a whole number that float64 cannot represent exactly"),
        ([10**400], "too large for float64"),
        (["a" * 257], "a text of more than 256 characters"),
    ],
)
def test_a_field_that_is_not_a_column_has_a_reason(values, reason):
    said, fields = written([{"x": value} for value in values])
    assert said.others == {"x": reason}
    assert fields == {}


@one_in(2)
@given(st.integers(0, 3), st.integers(0, 400), st.integers(1, 50), st.randoms())
def test_texts_are_what_all_but_one_in_a_hundred_are(others, fitting, batch, chance):
    for text, kind in (("5.5", "number"), ("2024-03-01", "date")):
        values = [text] * fitting + ["free"] * others + ["N/A"] * 3
        chance.shuffle(values)
        said, fields = written([{"x": value} for value in values], batch=batch)
        found = fitting > 0 and fitting >= 99 * others
        assert fields["x"].type == (kind if found else "keyword")
        assert fields["x"].missing == said.columns["x"].type_mismatches == found * (others + 3)


@pytest.mark.parametrize(
    ("name", "values", "codes"),
    [
        ("ean", [4006381333931, 96385074, 4006381333948], True),
        ("sku", ["1001", "1002"], True),
        ("sku", ["A1", "A2"], False),  # texts
        ("release", [2024, 2024, 2025, 2025], False),
        ("order_id", [7], True),
        ("part", [10_000_000 + 37 * n for n in range(20)], True),
        ("part", [10_000_000 + 37 * n for n in range(19)], False),  # few
        ("part", [1_000_000 + n for n in range(20)], False),  # short
        ("part", [9_999_990 + n for n in range(20)], False),  # of different lengths
        ("part", [10_000_000 + 37 * (n % 19) for n in range(20)], False),  # one occurs twice
        ("part", [10_000_000.5 + n for n in range(20)], False),
        ("part", [-10_000_000 - n for n in range(20)], False),
        ("part", [math.nan], False),
    ],
)
def test_numbers_that_are_codes(name, values, codes):
    said, _ = written([{name: value} for value in values])
    assert [column.codes for column in said.columns.values()] in ([codes], [])


def test_columns_are_the_same_in_several_passes(monkeypatch):
    metadata = [{f"x{at % 5}": at, "all": ["b", str(at % 3)]} for at in range(40)]
    entry, fields = written(metadata)
    memory = 2 * writer.BYTES_PER_DOCUMENT * len(metadata)
    monkeypatch.setattr(writer, "PASS_BYTES", memory)
    in_passes, fields_in_passes = written(metadata)
    assert in_passes == entry
    for name in fields:
        np.testing.assert_array_equal(fields_in_passes[name].values, fields[name].values)


def test_the_type_that_an_index_found_stays():
    metadata = [{"x": "a", "y": "1"}, {"x": 5, "y": "007"}, {"z": [1, "a"]}]
    documents = [Document(id=str(at), metadata=each) for at, each in enumerate(metadata)]
    with tempfile.TemporaryDirectory() as folder:
        known = {"x": "number", "y": "keyword", "z": "date", "gone": "number"}
        writer = FieldsWriter({}, known)
        writer.extend(documents)
        said = writer.finish(Path(folder), lambda: [metadata])
    assert {name: (c.type, c.missing, c.type_mismatches) for name, c in said.columns.items()} == {
        "x": ("number", 2, 1),
        "y": ("keyword", 1, 0),
        "z": ("date", 3, 1),
    }
    assert not said.others


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("number", "1998", 1998),
        ("number", " -1.5e3 ", -1500),
        ("number", "007", 7),
        ("number", -0.0, 0),
        ("date", "2024-03-01", datetime(2024, 3, 1, tzinfo=UTC)),
        ("date", "2024-03-01 09:30", datetime(2024, 3, 1, 9, 30, tzinfo=UTC)),
        ("date", "2024-03-01T09:30:00+0100", datetime(2024, 3, 1, 8, 30, tzinfo=UTC)),
        ("date", "1969-12-31T23:59:59.9999999Z", EPOCH - timedelta(microseconds=1)),
    ],
)
def test_declared_values_are_read_from_texts(kind, value, kept):
    (held,) = column([value], kind).values.tolist()
    if kind == "date":
        kept = (kept - EPOCH) // timedelta(microseconds=1)
    assert (held, math.copysign(1, held)) == (kept, math.copysign(1, kept))


def test_declared_keywords_are_read_from_what_json_writes():
    field = column([2**70, True, "a"], "keyword")
    assert field.texts[:] == [str(2**70), "a", "true"]
    assert positions(field.any_of([2**70, True])) == [0, 1]
    assert positions(field.equal(np.int64(7))) == []


def test_a_blank_text_is_not_a_value_of_any_type():
    for kind in ("number", "date"):
        assert column(["", " ", None], kind).missing == 3
    assert column(["", " ", None, "a"], "keyword").missing == 3


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("number", "abc", '"abc", which is not a number'),
        ("number", "1,000", "not a number"),
        ("number", "nan", "not a number"),
        ("number", "٣", "not a number"),
        ("number", "1e999", "too large for float64"),
        ("number", "9007199254740993", "a whole number that float64 cannot represent exactly"),
        ("number", True, "true, which is not a number"),
        ("date", "1 March", "not a date as in 2024-03-01"),
        ("date", "2024-02-30", r"not a date \("),
        ("date", "2024/03/01 09:30 +99:00", r"not a date \("),
        ("date", "1 Mar 2024 09:30:00.\u0664", r"not a date \("),
        ("date", "20240301", "not a date as in"),
        ("date", "2024-03-01T24:00", "not a date as in"),
        ("date", True, "not a date as in"),
        ("keyword", 1.5, "1.5, which is not a text"),
        ("keyword", {"a": 1}, "nested; declare its fields, as in `x.a`"),
        ("keyword", "a" * 1025, "a text of more than 1,024 characters"),
        (None, {"a": 1}, "nested"),
        (None, ["2024-03-01", "soon"], '"soon", which is not a date'),
    ],
)
def test_values_that_do_not_fit_a_declared_field_are_errors(kind, value, reason):
    with pytest.raises(AssertionError, match=f"field 'x' contains .*{reason}"):
        fault = DeclaredFields({"x": kind}).fault({"x": value})
        assert fault is None, fault


def test_an_undeclared_type_is_that_of_the_first_value():
    declared = DeclaredFields({"x": None, "y": None})
    assert declared.fault({"y": [None]}) is None
    assert declared.fault({"x": "2024-03-01", "y": 1}) is None
    assert declared.types == {"x": "date", "y": "number"}
    assert "not a date" in declared.fault({"x": "soon"})


def test_refused_documents_decide_no_type():
    declared = DeclaredFields({"x": None, "y": "number"})
    assert "not a number" in declared.fault({"x": 1, "y": "soon"})
    assert declared.fault({"x": "a", "y": 1}) is None
    assert declared.types == {"x": "keyword", "y": "number"}


def test_a_declared_field_is_a_column_whatever_there_is():
    for metadata in ([], [{}], [{"x": None}]):
        said, fields = written(metadata, {"x": "date", "y": "keyword", "z": "number"})
        assert list(fields) == ["x", "y", "z"]
        assert all(field.missing == len(metadata) == len(field) for field in fields.values())
        assert fields["x"].between(None, None).tolist() == [False] * len(metadata)
        assert fields["y"].equal("a").tolist() == [False] * len(metadata)
        assert fields["z"].any_of([1, 2]).tolist() == [False] * len(metadata)
        assert not said.others


def test_integers_beyond_float64_match_exactly():
    field = column([2.0**53, 2.0**53 + 2, math.inf])
    assert positions(field.equal(2**53 + 1)) == []
    assert positions(field.between(2**53 + 1, None)) == [1, 2]
    assert positions(field.between(None, 2**53 + 1)) == [0]
    assert positions(field.between(-(10**400), 10**400)) == [0, 1]
    assert positions(field.between(10**400, None)) == [2]
    assert positions(field.equal(-0.0)) == []


def test_a_day_is_the_whole_of_it_in_utc():
    field = column(["2024-03-01", "2024-03-01T23:59:59.999999Z", "2024-03-02T00:30:00+01:00", ""])
    assert positions(field.equal("2024-03-01")) == [0, 1, 2]
    assert positions(field.equal(date(2024, 3, 1))) == [0, 1, 2]
    assert positions(field.equal(datetime(2024, 3, 1))) == [0]
    assert positions(field.between(None, "2024-02-29")) == []
    assert positions(field.between("2024-03-01T00:00:00.000001", "2024-03-01")) == [1, 2]


def test_masks_are_joined():
    _, fields = written([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"b": "x"}])
    mask = fields["b"].equal("x") & ~fields["a"].present()
    assert (mask.dtype, positions(mask)) == (np.bool_, [2])


@pytest.mark.parametrize(
    ("kind", "ask", "told"),
    [
        ("keyword", lambda field: field.between("a", "b"), "has no ranges"),
        ("keyword", lambda field: field.equal(1.5), "is not a text"),
        ("keyword", lambda field: field.any_of("ab"), "give a list of values"),
        ("number", lambda field: field.equal("1"), "is not a number"),
        ("number", lambda field: field.between(True, None), "is not a number"),
        ("number", lambda field: field.equal(math.nan), "is not a number"),
        ("date", lambda field: field.equal("soon"), "is not a date as in 2024, 2024-03"),
        ("date", lambda field: field.between(5, None), "is not a date"),
        ("date", lambda field: field.equal(""), "is not a date"),
    ],
)
def test_conditions_that_do_not_fit_the_type_are_refused(kind, ask, told):
    with pytest.raises(QueryError, match=told) as caught:
        ask(column([None], kind))
    assert caught.value.field == "x"


def test_names_are_those_that_json_keeps():
    _, fields = written([{1: "a", "": "b", "a.b:c": "d", "ü": "e"}])
    assert list(fields) == ["", "1", "a.b:c", "ü"]


def test_fields_beyond_the_limit_are_not_looked_at_but_declared_ones_are():
    metadata = [{f"f{number:03}": number for number in range(99)} | {"n" * 257: 1}]
    said, fields = written([*metadata, {"g": 1, "h": 2}], {"z": "number"})
    assert len(fields) == 100
    assert {"z", "f000", "f098"} <= fields.keys()
    assert said.more
    assert not written(metadata[:0])[0].more


def test_too_many_texts_are_an_error_of_a_declared_column_only():
    metadata = [{"x": f"a{number}"} for number in range(8)]
    with patch("klsa_search.storage.columns.values.DETECTED_LIMITS", Limits(256, 7)):
        assert written(metadata)[0].others == {"x": "more than 7 different texts"}
        assert written(metadata[:7])[0].columns["x"].texts == 7
    with (
        patch("klsa_search.storage.columns.values.DECLARED_LIMITS", Limits(256, 7)),
        pytest.raises(CollectionError, match="keyword field 'x' has more than 7 different texts"),
    ):
        written(metadata, {"x": "keyword"})
    assert limits.DETECTED_LIMITS.texts < limits.DECLARED_LIMITS.texts


def test_types_made_in_python_are_what_the_documents_keep_of_them():
    class Name(str):
        __slots__ = ()

    said, fields = written([{"a": Name("x"), "b": np.float64(1.5), "c": (Name("y"), "z")}])
    assert [entry.type for entry in said.columns.values()] == ["keyword", "number", "keyword"]
    assert fields["c"].texts[:] == ["y", "z"]


def test_a_long_text_of_digits_is_a_number_or_none():
    assert number("0" * 5000 + "12") == number("-" + "0" * 5000 + "12") * -1 == 12
    assert number("0" * 5000 + "12") == 12
    assert as_number(["12", "1.5", "007", "-01", "0.5", "0"], number) == [
        12,
        1.5,
        "007",
        "-01",
        0.5,
        0,
    ]
    with pytest.raises(TypeMismatch, match="too large"):
        number("9" * 5000)
