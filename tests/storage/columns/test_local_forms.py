"""Numbers and dates in the forms of a country, decided from all values."""

import pytest

import klsa_search as klsa
from klsa_search.storage.columns.local_forms import decimal_sign, local_date, local_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2,5", 2.5),
        ("1.250,50", 1250.5),
        ("1 250,5", 1250.5),
        ("1\u202f250", 1250.0),
        ("1'250.5", 1250.5),
        ("1,250.50", 1250.5),
        ("1,250,000", 1250000.0),
        ("1.250.000", 1250000.0),
        ("0,125", 0.125),
        ("-12,00", -12.0),
        ("1,250", None),
        ("1,2,3", None),
        ("10.0.0.1", None),
        ("12,", None),
        ("٣,٥", None),
    ],
)
def test_numbers_are_read_if_they_are_the_same_everywhere(text, number):
    assert local_number(text) == number
    assert decimal_sign(text) in ("comma", "point", None)


@pytest.mark.parametrize(
    ("text", "order", "moment"),
    [
        ("28.12.2025", None, "2025-12-28"),
        ("1.3.2025 9:05", None, "2025-03-01T09:05:00"),
        ("28.12.2025, 14:05:30 Uhr", None, "2025-12-28T14:05:30"),
        ("2025/3/1", None, "2025-03-01"),
        ("31.02.2025", None, None),
        ("28/12/2025", None, None),
        ("28/12/2025", "day-first", "2025-12-28"),
        ("12/28/2025 2:05 PM", "month-first", "2025-12-28T14:05:00"),
        ("12/28/2025 12:05 am", "month-first", "2025-12-28T00:05:00"),
        ("12/28/2025", "day-first", None),
        ("28-12-2025", "day-first", "2025-12-28"),
        ("28/Dec/25 3:14 PM", None, "2025-12-28T15:14:00"),
        ("05/Mär/69", None, "1969-03-05"),
        ("5 March 2024", None, "2024-03-05"),
        ("5. März 2024 9:05 Uhr", None, "2024-03-05T09:05:00"),
        ("Mar 5, 2024", None, "2024-03-05"),
        ("Sept. 5, 2024, 2:05 pm", None, "2024-09-05T14:05:00"),
        ("30-Feb-2024", None, None),
        ("5 apples 2024", None, None),
        ("1.12.25", None, None),
        ("10.0.0.1", None, None),
    ],
)
def test_dates_are_read_in_their_order(text, order, moment):
    assert local_date(text, order) == moment


def build(tmp_path, rows, **settings):
    documents = [{"id": str(n), "text": "pump", **row} for n, row in enumerate(rows)]
    return klsa.build(documents, name="a", home=tmp_path / "index", replace=True, **settings)


def types(index):
    return {name: field.type for name, field in index.fields.items()}


GERMAN = [
    {"open": "28.12.2025", "price": "2,50", "weight": "1.250"},
    {"open": "28.12.2024", "price": "1.250,00", "weight": "2.000"},
    {"open": "01.01.2025 09:30", "price": "", "weight": "12"},
]


def test_a_german_table_has_numbers_and_dates(tmp_path):
    index = build(tmp_path, GERMAN)
    assert types(index) == {"open": "date", "price": "number", "weight": "number"}
    assert [hit.id for hit in index.search("", sort=["open:desc"]).hits] == ["0", "2", "1"]
    assert [hit.id for hit in index.search("pump", filter="price > 1000").hits] == ["1"]
    assert [hit.id for hit in index.search("pump", filter="weight = 2000").hits] == ["1"]
    assert index.settings.decimal == "comma"  # price shows it, and weight follows
    index.add([{"id": "new", "text": "pump", "open": "1.2.2026", "weight": "3.000"}])
    assert next(hit.id for hit in index.search("", sort=["weight:desc"]).hits) == "new"
    assert index.document("new").metadata["weight"] == "3.000"  # as it came


@pytest.mark.parametrize(
    ("dates", "order"),
    [(["28/12/2025", "01/02/2025"], "day-first"), (["12/28/2025", "1/2/2025"], "month-first")],
)
def test_all_dates_decide_the_order_of_day_and_month(tmp_path, dates, order):
    index = build(tmp_path, [{"on": on, "due": "3/5/2025"} for on in dates])
    assert types(index) == {"due": "date", "on": "date"}
    assert index.settings.dates == order
    month = "05" if order == "day-first" else "03"
    assert (
        len(index.search("pump", filter=f"due >= 2025-{month}-01 AND due < 2025-{month}-28").hits)
        == 2
    )


def test_ambiguous_values_are_asked_for(tmp_path, caplog):
    rows = [{"on": "3/5/2025", "price": "1,250"}, {"on": "4/5/2025", "price": "2,000"}]
    index = build(tmp_path, rows)
    assert types(index) == {"on": "keyword", "price": "keyword"}
    assert "--dates day-first or --dates month-first" in caplog.text
    assert "--decimal comma or --decimal point" in caplog.text
    index = build(tmp_path, rows, dates="day-first", decimal="point")
    assert types(index) == {"on": "date", "price": "number"}
    assert [
        hit.id for hit in index.search("pump", filter="price = 1250 AND on = 2025-05-03").hits
    ] == ["0"]
    index.add([{"id": "new", "text": "pump", "on": "13/5/2025", "price": "9,000"}])
    assert next(hit.id for hit in index.search("", sort=["on:desc"]).hits) == "new"


def test_mixed_tables_keep_points(tmp_path):
    rows = [{"a": "2.5", "b": "2,5"}, {"a": "1.250", "b": "3"}]
    index = build(tmp_path, rows)
    assert types(index) == {"a": "number", "b": "number"}
    assert [hit.id for hit in index.search("pump", filter="a < 2").hits] == ["1"]
    assert index.settings.decimal is None


def test_points_that_may_be_thousands_are_reported(tmp_path, caplog):
    rows = [{"a": "1.250"}, {"a": "2.000"}, {"a": "7"}]
    index = build(tmp_path, rows)
    assert types(index) == {"a": "number"}
    assert [hit.id for hit in index.search("pump", filter="a = 1.25").hits] == ["0"]
    assert "field 'a' is a number field: all numbers with a point are as 1.250" in caplog.text
    caplog.clear()
    build(tmp_path, rows, decimal="point")
    build(tmp_path, [*rows, {"a": "2.5"}])
    assert "field 'a'" not in caplog.text


def test_versions_and_addresses_are_no_numbers_or_dates(tmp_path):
    rows = [{"v": "1.12.25", "ip": "10.0.0.1"}, {"v": "1.2.3", "ip": "10.0.0.12"}]
    assert types(build(tmp_path, rows)) == {"ip": "keyword", "v": "keyword"}
