"""Fields of later documents equal those of a new build of the live documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.collection import Document
from klsa_search.errors import QueryError
from klsa_search.storage.columns import growing_columns as module
from klsa_search.storage.columns.column import Column
from klsa_search.storage.columns.columns import ranges_of
from klsa_search.storage.columns.growing_columns import LaterColumns, coerced
from klsa_search.storage.columns.values import coercion
from tests.storage.columns.test_columns import in_parts, written

VALUES = st.one_of(
    st.sampled_from(["a", "b", "", "2024-03-01", "2024-03-02T09:30:00Z", "true", "zz"]),
    st.sampled_from([1, 2.5, -0.0, 2**60 + 1, True, False, None]),
)
DATES = st.sampled_from(["2024-03-01", "2024-03-02T09:30:00Z", "", "2021-01-01"])
NUMBERS = st.sampled_from([1, 2.5, -0.0, 7, None])
KEYWORDS = st.sampled_from(["a", "b", "", "zz", "2024-03-01"])


def metadata(values):
    own = st.one_of(values, st.lists(values, max_size=3))
    return st.dictionaries(st.sampled_from(["x", "y"]), own, max_size=2)


ALIKE = st.sampled_from([VALUES, DATES, NUMBERS, KEYWORDS]).map(metadata)
COLLECTIONS = ALIKE.flatmap(
    lambda one: st.tuples(
        st.lists(one, max_size=5),
        st.lists(st.one_of(one, one, one, metadata(VALUES)), max_size=6),
    )
)


def grown(built, later, dead=(), types=None, *, batch=2):
    """The fields of documents built in and later ones, and the positions that live."""
    said, fields = written(built, types)
    growing = LaterColumns(fields, said, types or {}, len(built))
    documents = [Document(id=f"later{at}", metadata=each) for at, each in enumerate(later)]
    for begin in range(0, len(documents), batch):
        growing.extend(documents[begin : begin + batch])
    living = np.ones(len(built) + len(later), np.bool_)
    living[list(dead)] = False
    return growing.fields(living), living, fields


def asks(field):
    if field.type == "keyword":
        return [field.any_of(["a", "zz", "true"]), field.equal(""), field.equal("2024-03-01")]
    if field.type == "number":
        return [field.any_of([1, 7]), field.between(0, 3), field.between(2)]
    return [
        field.equal("2024-03-01"),
        field.between("2022-01-01", "2024-03-01"),
        field.between(None, "2024-03-02"),
    ]


def same(joined, living, fresh):
    """Masks and arrays of a joined field are those of a fresh one, and none of what is gone."""
    assert len(joined) == len(living)
    assert (joined.type, joined.missing) == (fresh.type, fresh.missing)
    masks = [(joined.present(), fresh.present()), *zip(asks(joined), asks(fresh), strict=True)]
    for mask, expected in masks:
        assert not mask[~living].any()
        assert mask[living].tolist() == expected.tolist()
    assert in_parts(ranges_of(joined, Column.present), len(living), 3) == joined.present().tolist()
    predicate = (Column.between, 2, None) if joined.type == "number" else (Column.any_of, [])
    some = ranges_of(joined, *predicate)
    assert in_parts(some, len(living), 2) == some(0, len(living)).tolist()
    assert (joined.starts is None) == (fresh.starts is None)
    assert joined.texts[:] == fresh.texts[:]
    if joined.starts is None:
        assert np.array_equal(joined.values[living], fresh.values, equal_nan=fresh.type == "number")
    else:
        assert np.array_equal(joined.values, fresh.values)
        sizes = np.diff(joined.starts)
        assert sizes[living].tolist() == np.diff(fresh.starts).tolist()
        assert not sizes[~living].any()


@given(COLLECTIONS, st.sets(st.integers(0, 10)), st.integers(1, 4))
def test_a_refit_of_what_lives_has_the_same_fields(collections, dead, batch):
    built, later = collections
    dead = {at for at in dead if at < len(built) + len(later)}
    fields, living, before = grown(built, later, dead, batch=batch)
    left = [each for at, each in enumerate([*built, *later]) if at not in dead]
    known = {name: field.type for name, field in fields.items()}
    _, refitted = written(left, known=known)
    for name, field in fields.items():
        if name in before:
            assert field.type == before[name].type
        if name in refitted:
            same(field, living, refitted[name])
            if not dead:
                assert field.type_mismatches == refitted[name].type_mismatches
        else:
            assert field.missing == len(left)
    assert not fields.keys() & fields.unfilterable.keys()
    for name in {name for document in left for name in document} - fields.keys():
        assert fields.unfilterable[name]


@given(COLLECTIONS, st.integers(1, 6))
def test_the_division_of_documents_changes_nothing(collections, batch):
    one, _living, _ = grown(*collections, batch=100)
    other, _, _ = grown(*collections, batch=batch)
    assert (one.keys(), dict(one.unfilterable)) == (other.keys(), dict(other.unfilterable))
    for name in one:
        same_values = np.array_equal(
            one[name].values, other[name].values, equal_nan=one[name].type == "number"
        )
        assert same_values
        for mask, expected in zip(asks(one[name]), asks(other[name]), strict=True):
            assert np.array_equal(mask, expected)


def test_a_value_that_does_not_fit_counts_as_missing():
    built = [{"x": 1, "on": "2024-03-01"}]
    later = [{"x": 2}, {"x": "many", "on": "soon"}, {"x": [3, "N/A"]}]
    fields, _, _ = grown(built, later)
    assert fields["x"].between(1, 3).tolist() == [True, True, False, True]
    assert (fields["x"].missing, fields["x"].type_mismatches) == (1, 2)
    assert (fields["on"].missing, fields["on"].type_mismatches) == (3, 1)
    assert not fields.unfilterable
    with pytest.raises(KeyError):
        fields["never met"]
    fields, _, _ = grown(built, later, dead=[2])
    assert (fields["x"].missing, fields["x"].type_mismatches) == (0, 1)


def test_the_first_value_of_a_later_field_decides_its_type():
    first = {"a": "N/A", "b": [["c"]], "c": "5", "d": "2024-03-01", "e": ""}
    second = {"a": 5, "b": "x", "c": "six", "d": "later", "e": None}
    fields, _, _ = grown([], [first, second])
    assert {name: (field.type, field.type_mismatches) for name, field in fields.items()} == {
        "a": ("number", 1),
        "b": ("keyword", 1),
        "c": ("keyword", 0),
        "d": ("date", 1),
    }
    assert fields.unfilterable == {"e": "no value"}
    fields, _, _ = grown([], [first, second], dead=[0])
    assert fields["d"].type == "date"


def test_writes_make_no_column_that_the_build_did_not():
    fields, _, _ = grown([{"x": 1}, {"x": "a"}], [{"x": "b"}], dead=[0])
    assert "x" not in fields
    assert fields.unfilterable["x"] == "numbers and texts"


def test_true_and_false_go_on_as_such():
    fields, living, _ = grown([{"x": True}], [{"x": False}, {}])
    assert fields["x"].equal(False).tolist() == [False, True, False]
    assert fields["x"].missing == 1
    fields, _, _ = grown([{"x": "yes"}], [{"x": False}])
    assert fields["x"].texts[:] == ["false", "yes"]
    assert living.sum() == 3


def test_declared_fields_take_what_can_be_read_as_theirs():
    fields, _, _ = grown([{"x": 1}], [{"x": "2"}], types={"x": "number"})
    assert fields["x"].equal(2).tolist() == [False, True]
    with pytest.raises(QueryError):
        fields["x"].equal("two")


def test_snapshots_stay_as_they_are():
    said, built = written([{"x": "a"}])
    growing = LaterColumns(built, said, {}, 1)
    growing.extend([Document(id="1", metadata={"x": "c"})])
    before = growing.fields(np.ones(2, np.bool_))
    growing.extend([Document(id="2", metadata={"x": ["b", "c"]}), Document(id="3")])
    after = growing.fields(np.ones(4, np.bool_))
    assert before["x"].texts[:] == ["a", "c"]
    assert before["x"].equal("c").tolist() == [False, True]
    assert after["x"].texts[:] == ["a", "b", "c"]
    assert after["x"].equal("c").tolist() == [False, True, True, False]


def test_names_beyond_the_most_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(module, "MAX_FIELDS", 2)
    fields, _, _ = grown([{"x": 1}], [{"y": 1, "z": 1}, {"a": 1}])
    assert sorted(fields) == ["x", "y"]


def test_a_text_that_is_too_long_counts_as_missing():
    fields, _, _ = grown([{"x": "a"}], [{"x": "b" * 257}])
    assert (fields["x"].missing, fields["x"].type_mismatches) == (1, 1)


def test_values_that_do_not_fit_keep_no_frames():
    values, misfits = coerced(coercion("number", declared=False), ["1", "x"], None)
    assert values == [1.0, None]
    ((document, value, mismatch),) = misfits
    assert (document, value, mismatch.__traceback__) == (1, "x", None)
