"""Numbers and dates in the forms of a country, decided from all values."""

import pytest

import klsa_search as klsa
from klsa_search.errors import CollectionError, QueryError, SettingsError
from klsa_search.indexing import refit
from klsa_search.storage.columns.declared import DeclaredFields
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
        ("12/28/2025 15:30 AM", "month-first", None),
        ("12/28/2025 15:30 PM", "month-first", "2025-12-28T15:30:00"),
        ("12/28/2025", "day-first", None),
        ("28-12-2025", "day-first", "2025-12-28"),
        ("28/Dec/25 3:14 PM", None, "2025-12-28T15:14:00"),
        ("05/Mär/69", None, "1969-03-05"),
        ("5 March 2024", None, "2024-03-05"),
        ("5. März 2024 9:05 Uhr", None, "2024-03-05T09:05:00"),
        ("05/03/2024 08h30", "day-first", "2024-03-05T08:30:00"),
        ("Mar 5, 2024", None, "2024-03-05"),
        ("Sept. 5, 2024, 2:05 pm", None, "2024-09-05T14:05:00"),
        ("12 KASIM 2024", None, "2024-11-12"),
        ("12 Mayıs 2024", None, "2024-05-12"),
        ("3 HAZİRAN 2024", None, "2024-06-03"),
        ("12 ſept 2024", None, "2024-09-12"),
        ("vendredi 1 mars 2024", None, "2024-03-01"),
        ("Fri. 1 March 2024", None, "2024-03-01"),
        ("before 3 March 2024", None, None),
        ("Room 12 May 2024", None, None),
        ("Model 5 May 24", None, None),
        ("Monitor 5 May 24", None, None),
        ("until May 12, 2024", None, None),
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


def test_ambiguous_values_need_a_declaration(tmp_path, caplog):
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


def test_versions_and_addresses_are_not_numbers_or_dates(tmp_path):
    rows = [{"v": "1.12.25", "ip": "10.0.0.1"}, {"v": "1.2.3", "ip": "10.0.0.12"}]
    assert types(build(tmp_path, rows)) == {"ip": "keyword", "v": "keyword"}


CURRENCIES = [
    (["€ 1.234,50", "€ 12,00", "-€ 3,10"], "€", [1234.5, 12, -3.1]),
    (["$1,234.50", "$12.00", "($3.10)"], "$", [1234.5, 12, -3.1]),
    (["12,5 %", "+3 %", "0"], "%", [12.5, 3, 0]),
    (["1 234,00 kr", "12,50 kr.", "-   kr"], "kr", [1234, 12.5, None]),
    (["CHF 1'234.50", "CHF 12", ""], "CHF", [1234.5, 12, None]),
    (["₹1,23,456.00", "₹12.50", "n/a"], "₹", [123456, 12.5, None]),
    (["1.234 EUR", "2,50 EUR", "12 EUR"], "EUR", [1234, 2.5, 12]),
    (["1.234,50-", "2,00", "10,00-"], "", [-1234.5, 2, -10]),
]


@pytest.mark.parametrize(("values", "unit", "numbers"), CURRENCIES)
def test_numbers_in_one_currency_are_numbers(tmp_path, caplog, values, unit, numbers):
    index = build(tmp_path, [{"a": value} for value in values])
    assert types(index) == {"a": "number"}
    known = [float(each) if each == each else None for each in index.fields["a"].values]
    assert known == numbers
    assert (f"'a' is a number field: its values are in {unit}" in caplog.text) == bool(unit)
    hit = index.search("pump", filter="a > 1000 OR a < -1000 OR a = 12.5").hits[0]
    assert hit.metadata["a"] in numbers
    index.add([{"id": "new", "text": "pump", "a": values[0]}])
    later = refit(index).fields["a"].values
    assert [later[0], later[-1]] == [numbers[0]] * 2


def test_mixed_currencies_stay_texts(tmp_path, caplog):
    rows = [{"a": "€ 5", "b": "5", "c": "€ 5"}, {"a": "$ 5", "b": "$ 6", "c": "7"}]
    index = build(tmp_path, rows)
    assert types(index) == dict.fromkeys("abc", "keyword")
    told = "field 'a' is a keyword field: it has '€ 5' in document 1 and '$ 5' in document 2"
    assert told in caplog.text
    assert "'c' is a keyword field: it has '€ 5' in document 1 and '7'" in caplog.text


def test_a_later_value_in_another_currency_is_reported(tmp_path):
    index = build(tmp_path, [{"a": "€ 5"}, {"a": "€ 6"}])
    added = index.add([{"id": "new", "text": "pump", "a": "$ 7"}])
    (reason,) = added.warnings.reasons
    assert "in $ instead of €" in reason
    for name, error in (
        ("a > '$ 5'", "field: '\\$ 5' is not a number in €"),
        ("a > 5 €", "expected one of"),
    ):
        with pytest.raises(QueryError, match=error):
            index.search("pump", filter=name)
    assert [hit.id for hit in index.search("pump", filter="a > '5,50 €'").hits] == ["1"]


def test_declared_fields_take_the_currency_of_their_first_value(tmp_path):
    index = build(tmp_path, [{"a": "5 €"}, {"a": "6 €"}], fields=["a:number"])
    assert index.settings.units == ("a=€",)
    with pytest.raises(CollectionError, match="in \\$ instead of €"):
        build(tmp_path, [{"a": "5 €"}, {"a": "6 $"}], fields=["a:number"])
    assert types(build(tmp_path, [{"a": "5"}, {"a": "6 $"}], units=["a=$"])) == {"a": "keyword"}
    for units in (["a"], ["=€"], ["a="], ["a=$", "a=€"]):
        with pytest.raises(SettingsError, match="units"):
            build(tmp_path, [{"a": "5 €"}], units=units)


def test_codes_and_sizes_are_not_amounts(tmp_path):
    rows = [{"a": "DIN 912", "b": "10 mm", "c": "2-", "d": "IT 5"}] * 3
    assert set(types(build(tmp_path, rows)).values()) == {"keyword"}


@pytest.mark.parametrize(
    ("dates", "kind", "moment"),
    [
        (["31.12.24", "01.02.69"], "date", "1969-02-01"),
        (["31/12/24", "01/02/25"], "date", "2025-02-01"),
        (["12/31/24 9:05 PM", "1/2/25 10:00 AM"], "date", "2025-01-02"),
        (["1/2/24", "3/4/25"], "keyword", None),
        (["24-12-31", "25-01-15"], "keyword", None),
    ],
)
def test_years_of_two_digits_are_read_if_the_order_shows(tmp_path, caplog, dates, kind, moment):
    index = build(tmp_path, [{"on": on} for on in dates])
    assert types(index) == {"on": kind}
    if moment:
        assert "years of two digits" in caplog.text
        assert "from 1969 to 2068" in caplog.text
        assert [hit.id for hit in index.search("pump", filter=f"on = {moment}").hits] == ["1"]
    else:
        assert "--dates day-first or --dates month-first" in caplog.text
        assert types(build(tmp_path, [{"on": on} for on in dates], dates="day-first")) == {
            "on": "date"
        }


def test_filters_read_numbers_and_dates_as_the_columns(tmp_path):
    index = build(tmp_path, GERMAN)

    def ids(filter_):
        return {hit.id for hit in index.search("pump", filter=filter_).hits}

    assert ids("price > 1.000,00") == ids("price > 1 000") == ids("price > '1000,00'") == {"1"}
    assert ids("price = 2,5") == ids("price 2,4 TO 2,6") == ids("price IN ['2,50']") == {"0"}
    assert ids({"field": "price", ">": "1.000,00"}) == {"1"}
    assert ids("weight = 1,250") == set()
    assert ids("open = 28.12.2025") == ids("open >= 1.2.2025") == {"0"}
    with pytest.raises(QueryError, match=r"'1.250' could be 1.25 or 1250; write one of these"):
        ids("weight = 1.250")
    with pytest.raises(QueryError, match=r"'1,2,3' is not a number; write it as in 2500.5"):
        ids("weight = '1,2,3'")
    with pytest.raises(QueryError, match="quote a value with spaces"):
        ids("open = 28.12.2025 09:30")


@pytest.mark.parametrize("month", ["2024-03", "Mar 2024", "2024 March"])
def test_a_month_in_a_filter_is_all_its_days(tmp_path, month):
    index = build(tmp_path, [{"on": f"2024-{day}"} for day in ("02-29", "03-01", "03-31", "04")])

    def ids(comparison):
        return {hit.id for hit in index.search("pump", filter=f"on {comparison} '{month}'").hits}

    assert ids("=") == {"1", "2"}
    assert ids("<=") == {"0", "1", "2"}
    assert ids(">") == {"3"}


def test_filters_ask_for_a_number_that_could_be_two(tmp_path):
    index = build(tmp_path, [{"price": 2.5}, {"price": 1250}])
    assert [hit.id for hit in index.search("pump", filter="price > 1 000").hits] == ["1"]
    assert [hit.id for hit in index.search("pump", filter="price < 2.500,00").hits] != []
    with pytest.raises(QueryError, match=r"'1,250' could be 1.25 or 1250"):
        index.search("pump", filter="price = 1,250")


def test_added_files_may_have_other_forms(tmp_path, caplog):
    index = build(tmp_path, GERMAN)
    (tmp_path / "us.csv").write_text(
        "id,text,open,price,weight,due\n"
        'us,"<p>caf&eacute;</p>",12/31/2026,"3,250.00","4,000",1/2/2026\n'
    )
    options = {"dates": "month-first", "decimal": "point", "html": ["text", "body"]}
    assert index.add(tmp_path / "us.csv", **options) == 1
    assert index.document("us").text == "café"
    stored = {"open": "2026-12-31", "price": 3250.0, "weight": 4000.0, "due": "2026-01-02"}
    assert index.document("us").metadata == stored
    assert next(hit.id for hit in index.search("", sort=["weight:desc"]).hits) == "us"
    assert types(index)["due"] == "date"
    assert "html: no document has a field 'body'" in caplog.text
    with pytest.raises(SettingsError, match="dates = 'backwards'"):
        index.add(tmp_path / "us.csv", dates="backwards")


def test_a_refit_reads_dates_and_numbers_in_given_forms(tmp_path):
    rows = [{"on": "3/5/2025", "price": "1,250", "kind": "a"}] * 2
    index = build(tmp_path, rows)
    assert set(types(index).values()) == {"keyword"}
    index = refit(index, dates="day-first", decimal="comma")
    assert types(index) == {"on": "date", "price": "number", "kind": "keyword"}
    assert index.search("pump", filter="price = 1.25 AND on = 2025-05-03").total == 2


DATES = [
    ("2024-03-01 09:30:00 UTC", "2024-03-01T09:30:00+00:00"),
    ("2024-03-01 09:30:00.25 +0100", "2024-03-01T09:30:00.25+0100"),
    ("Fri, 01 Mar 2024 09:30:00 GMT", "2024-03-01T09:30:00+00:00"),
    ("Freitag, 1. März 2024 09:30 Uhr", "2024-03-01T09:30:00"),
    ("2024-3-1", "2024-03-01"),
    ("2024-3/1", None),
    ("1er mars 2024", "2024-03-01"),
    ("1 de marzo de 2024", "2024-03-01"),
    ("1 марта 2024 09:30", "2024-03-01T09:30:00"),
    ("March 1st, 2024", "2024-03-01"),
    ("2024年3月1日", "2024-03-01"),
    ("2024년 3월 1일", "2024-03-01"),
    ("2024. 3. 1.", "2024-03-01"),
    ("2024.03.01", "2024-03-01"),
    ("2024.3.1", None),  # a version
    ("2024-03", "2024-03"),
    ("2024-13", None),
    ("Mar 2024", "2024-03"),
    ("2024 Mar", "2024-03"),
    ("2024 Mar 5", "2024-03-05"),
    ("2024/03/01 9:30:00 AM GMT+1", "2024-03-01T09:30:00+0100"),
    ("2024-03-01 09:30 +530", "2024-03-01T09:30:00+0530"),
    ("2024-03-01 09:30 +5", "2024-03-01T09:30:00+0500"),
    ("Fri Mar 01 09:30:00 +0000 2024", "2024-03-01T09:30:00+0000"),  # Twitter
    ("Fri Mar  1 09:30:00 2024", "2024-03-01T09:30:00"),  # ctime
    ("Fri Mar 01 2024 09:30:00 GMT+0100 (CET)", "2024-03-01T09:30:00+0100"),  # JavaScript
]


@pytest.mark.parametrize(("text", "iso"), DATES)
def test_zones_and_days_of_the_week(text, iso):
    assert local_date(text) == iso


def test_fields_of_such_dates_are_date_fields(tmp_path):
    row = {f"f{n:02}": text for n, (text, iso) in enumerate(DATES) if iso}
    assert types(build(tmp_path, [row] * 2)) == dict.fromkeys(row, "date")


def test_seasons_are_not_months(tmp_path, caplog):
    seasons = ["2001-02", "2012-13", *["2009-10"] * 200]
    index = build(tmp_path, [{"season": season, "on": "28/12/2025"} for season in seasons])
    assert types(index) == {"season": "keyword", "on": "date"}
    assert "is read as a month" not in caplog.text
    assert types(build(tmp_path, [{"season": "2001-02"}, {"season": "2003-04"}])) == {
        "season": "date"
    }
    assert "'2001-02' in document 1 is read as a month; --field season:keyword" in caplog.text
    caplog.clear()
    build(tmp_path, [{"season": "2024-03"}])
    assert "is read as a month" not in caplog.text


def test_dates_of_zeros_are_missing(tmp_path):
    rows = [{"on": "0000-00-00 00:00:00"}, {"on": "2024-03-01 00:00:00"}]
    assert types(build(tmp_path, rows)) == {"on": "date"}


@pytest.mark.parametrize(
    ("value", "unit"),
    [(1709285400, "seconds"), ("1709285400.5", "seconds"), (1709285400000, "milliseconds")],
)
def test_times_in_numbers_are_dates_if_declared(tmp_path, caplog, value, unit):
    rows = [{"created_at": value, "n": value}] * 2
    assert set(types(build(tmp_path, rows)).values()) == {"number"}
    assert f"may be a time in {unit} since 1970; --field created_at:date" in caplog.text
    assert "field 'n'" not in caplog.text
    index = build(tmp_path, rows, fields=["created_at:date"])
    first_day = "created_at >= 2024-03-01 AND created_at < 2024-03-02"
    assert index.search("pump", filter=first_day).total == 2


@pytest.mark.parametrize("value", [2024, "202403011230", 20240301123000, 1e30, 10**400, True])
def test_other_numbers_are_not_dates(value):
    fault = DeclaredFields({"on": "date"}).fault({"on": value})
    assert "not a date as in 2024-03-01" in fault


def test_fields_that_disagree_on_the_order_of_dates_are_reported(tmp_path, caplog):
    build(tmp_path, [{"a": "25/12/2024", "b": "12/25/2024"}])
    for name, value in (("a", "25/12/2024"), ("b", "12/25/2024")):
        fact = f"field '{name}' is a keyword field: dates such as '{value}'"
        assert fact in caplog.text
    assert caplog.text.count("are written otherwise in other fields; --dates day-first or") == 2


def test_values_of_several_parts_are_reported(tmp_path, caplog):
    rows = [
        {"tags": "red; big", "kind": "a|b", "name": "Smith, Ann", "labels": '[{"n": 1}, {"n": 2}]'},
        {"tags": "blue", "kind": "b|a", "name": "Ng, Bob", "labels": '[{"n": 1}, {"n": 3}]'},
    ]
    build(tmp_path, rows)
    assert "--split 'tags=;' divides them" in caplog.text
    assert "--split 'kind=|' divides them" in caplog.text
    assert "field 'name'" not in caplog.text
    assert "field 'labels'" not in caplog.text
