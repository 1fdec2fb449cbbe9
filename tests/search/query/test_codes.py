"""Codes are found as they are typed, before documents that contain their parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.search.query.codes import codes_of

CODES = {
    "E-1043/2": "error E-1043/2 in the printer",
    "E-1043/7": "printer error E-1043/7, error 2, error E-9",
    "E1043": "error E1043 at step 2",
    "SUP-1058": "ticket SUP-1058 follows SUP-1057",
    "4711-A": "part 4711-A with a printer",
    "4711-B": "part 4711-B and A, part A, part 4711",
    "1.2.30": "version 1.2.30 of the driver",
    "1.2.3": "version 1.2.3 of the driver 30",
    "path": "see /var/log/cups/error.log for the printer",
    "parts of a path": "error log of cups in var, log error printer",
    "32GB": "laptop with 32GB",
    "32 GB": "laptop with 32 GB",
    "8 GB": "laptop laptop with 8 GB, model 32 inches, GB GB",
    "v2.11.3": "firmware v2.11.3",
    "v2.11.4": "firmware v2.11.4 and 3",
    "750ml": "bottle of 750ml",
    "0x80070057": "Windows error 0x80070057",
    "0000007b": "stop error 0000007b",
    "750": "bottle of ml ml, model 750",
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(1, marks=pytest.mark.slow), 2],
    ids=["one part", "two parts"],
)
def tickets(request, index_of):
    rows = [{"id": f"with {id_}", "text": text} for id_, text in CODES.items()]
    rows += [{"id": f"n{n}", "text": f"error error {n} 2 e printer laptop part"} for n in range(40)]
    options = {"partitions": request.param, "workers": 1, "ranker": "bm25"}
    return index_of(rows, **options)


FOUND = {
    "E-1043/2": {"E-1043/2"},
    "error E-1043/2": {"E-1043/2"},
    "e1043/2": {"E-1043/2"},
    "the printer shows the error E-1043/2 whenever it starts": {"E-1043/2"},
    "ticket 1058": {"SUP-1058"},
    "1058": {"SUP-1058"},
    "part 4711-A": {"4711-A"},
    "driver version 1.2.3": {"1.2.3"},
    "printer /var/log/cups/error.log": {"path"},
    "32gb laptop": {"32GB", "32 GB"},
    "32 gb laptop": {"32GB", "32 GB"},
    "bottle 750 ml": {"750ml"},
    "firmware 2.11.3": {"v2.11.3"},
    "driver v1.2.3": {"1.2.3"},
    "error 80070057": {"0x80070057"},
    "0x0000007B": {"0000007b"},
}


@pytest.mark.parametrize(("query", "expected"), FOUND.items())
def test_documents_with_the_code_come_first_and_alone_if_all_words_must_match(
    tickets, query, expected
):
    found = [hit.id.removeprefix("with ") for hit in tickets.search(query, 60)]
    first = set(found[: len(expected) + (query == "1058")])
    assert first >= expected
    assert len(found) == len({*found})
    pages = [tickets.search(query, 20, offset=at) for at in range(0, 60, 20)]
    assert [hit.id.removeprefix("with ") for page in pages for hit in page] == found
    if len(query.split()) <= 3:
        every = tickets.search(query, 60, match="all")
        assert {hit.id.removeprefix("with ") for hit in every} == expected


@given(st.sampled_from([*CODES]), st.sampled_from(["any", "all"]))
def test_a_code_is_searched_whatever_is_beside_it(tickets, code, match):
    query = f"{code} printer"
    found = tickets.search(query, 60, match=match)
    assert found.total == len(found)
    assert len({hit.id for hit in found}) == len(found)


def test_a_code_that_no_document_has_is_searched_by_its_parts(tickets):
    found = tickets.search("error E-1043/9")
    assert found.total > 10


def test_a_code_that_no_document_has_is_an_unknown_word_if_all_words_must_match(tickets):
    assert tickets.search("E-1044/9", match="all").total == 0
    found = tickets.search("laptop E-1044/9", match="all")
    assert found.total == tickets.search("laptop", match="all").total > 40
    assert {*found.interpretation.unknown} == {"E", "1044", "9"}
    assert tickets.search("error 2 of laptop E-1058/2", match="all").total == 40


def test_a_letter_of_a_code_may_be_a_stop_word_of_another_language(index_of):
    german = "Der Artikel 4711-{} wurde falsch geliefert, bitte um Umtausch."
    english = "The article 4712-{} was delivered by mistake to a customer."
    rows = [text.format(letter) for letter in "AB" for text in (german, english)]
    index = index_of(rows, language="de,en")
    for query, id_ in (("4711-A", "0"), ("4712-A", "1"), ("4711 a", "0"), ("4712-B", "3")):
        assert [hit.id for hit in index.search(query, match="all")] == [id_], query


def test_a_number_of_few_digits_is_not_several(index_of):
    index = index_of(["version 10.5", "moved on 2024-02-03"])
    assert index.search("105").interpretation.corrections == {}
    assert [hit.id for hit in index.search("20240203")] == ["1"]


@pytest.mark.parametrize(
    "query",
    [
        "edit/copy/delete the printer",
        "java.lang.String in a printer",
        "does the laptop of 500GB fit the printer",
        "sold 10,000 times in three whole years",
        "does version 1.22 print on both sides",
        "2017年度の蔵書点数が二番目に多かったものは何ですか",
    ],
)
def test_alternatives_names_amounts_and_sentences_are_no_codes(query):
    assert codes_of(query) == []


def test_codes_of_scripts_without_spaces_stand_between_words():
    assert codes_of("错误「E-1043/2」怎么办") == ["E-1043/2"]
    assert codes_of("the pump...E-1043/2") == ["E-1043/2"]


@pytest.mark.parametrize("sign", ["-", "/", ".", "_", " ", "", "–", "·"])
def test_a_letter_apart_from_a_number_is_a_part_of_it(index_of, sign):
    index = index_of({letter: f"Part 4711{sign}{letter} fits" for letter in "ABCGT"})
    for letter in "AT":
        for query in (f"4711 {letter}", f"4711 {letter.lower()}", f"part 4711 {letter}"):
            assert index.search(query)[0].id == letter, query
            assert [hit.id for hit in index.search(query, match="all")] == [letter], query


def test_a_letter_after_a_number_may_be_a_word(index_of):
    records = [
        {"id": "0", "text": "it costs 250 per month"},
        {"id": "1", "text": "the fee is 250 a month and costs 9"},
        {"id": "2", "text": "from 2023 a 2024"},
        {"id": "3", "text": "from 2023 to 2024"},
    ]
    index = index_of(records)
    assert {hit.id for hit in index.search("costs 250 a", match="all")} == {"0", "1"}
    assert {hit.id for hit in index.search("it costs 250 a", match="all")} == {"0", "1"}
    assert {hit.id for hit in index.search("2023 a 2024", match="all")} == {"2", "3"}


def test_a_number_finds_the_code_that_ends_with_it(index_of):
    texts = ["update KB5034441 fails", "update KB5034123", "error E1058", "15034441 of a8b5034441"]
    index = index_of({f"d{number}": text for number, text in enumerate(texts)})
    for query, first in (("5034441", "d0"), ("update 5034441", "d0"), ("1058", "d2")):
        found = index.search(query, match="all")
        assert [hit.id for hit in found] == [first]
        assert found.interpretation.unknown == ()
    assert index.search("034441", match="all").total == 0


NUMBERS = {
    "release": "Release 4.2 fixes the printer",
    "parts": "Chapter 4 has 2 parts and 42 pages",
    "list": "steps 4 2 and 4-2 and 4/2 and 4:2, 4 4 2 2",
    "later": "version 4.2.1 of the driver",
    "models": "models 4.21 and 4 2",
    "eighth": "a gap of 0.125",
    "parts of an eighth": "codes 0 125, codes 0-125",
    "thousands": "length 1.250",
    "groups": "length 1 250",
    "many": "sold 12500",
    "other": "version 1.4.2, and 14.2",
    "v": "v4.2 is out",
    "wide": "screen of 16:9",
    "wider": "screen 16.9 and 169 and 16 9",
    "old": "screen of 4:3",
    "inch": 'pipe of 1/2" steel',
    "pages": "pages 1, 2 and 1.2 and 12 of the pipe catalogue",
    "bolt": "bolt M8x40",
    "bolts": "bolt M8 x 40",
    "short bolt": "bolt M8x4 of 0 and 40",
    "jack": "jack 3.5mm",
    "jacks": "jack 3,5 mm",
    "lens": "lens of 35mm and 5mm",
    "date": "dated 2024-02-03",
    "day": "dated 20240203",
    "host": "host 192.168.0.1",
    "hosts": "host 192.168.0.12, 1 and 192 168",
}


@pytest.fixture(scope="module", params=[1, 2], ids=["one part", "two parts"])
def numbers(request, index_of):
    rows = [{"id": id_, "text": text} for id_, text in NUMBERS.items()]
    rows += [{"id": f"n{n}", "text": f"{n} screen bolt jack pipe 4 2"} for n in range(10)]
    return index_of(rows, partitions=request.param, workers=1, ranker="bm25")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("4.2", ["release", "later", "v"]),
        ("4.2%", ["release", "later"]),
        ("0.125", ["eighth"]),
        ("1.250", ["thousands", "groups"]),
        ("12.500", ["many"]),
        ("v4.2", ["release", "later", "v"]),
        ("4.2.1", ["later"]),
        ("version 4.2.1", ["later"]),
        ("1.4.2", ["other"]),
        ("16:9", ["wide"]),
        ("screen 4:3", ["old"]),
        ('1/2"', ["inch"]),
        ("1/2 pipe", ["inch"]),
        ("M8x40", ["bolt", "bolts"]),
        ("M8 x 40", ["bolt", "bolts"]),
        ("M8x4", ["short bolt"]),
        ("3.5mm jack", ["jack", "jacks"]),
        ("3.5 mm", ["jack", "jacks"]),
        ("2024-02-03", ["date", "day"]),
        ("192.168.0.1", ["host"]),
    ],
)
def test_numbers_with_signs_are_found_as_typed(numbers, query, expected):
    first = [hit.id for hit in numbers.search(query)][: len(expected)]
    assert sorted(first) == sorted(expected)
    assert {hit.id for hit in numbers.search(query, 40, match="all")} == {*expected}


DAYS = {
    "iso": "log of 2024-03-15",
    "german": "Notiz vom 15.03.2024",
    "short": "am 15.3.2024",
    "american": "on 3/15/2024",
    "english": "from 15 March 2024 on",
    "named": "since March 15, 2024",
    "month": "15. März 2024",
    "other": "2024-03-16, 15 April 2024 and 15 of 3 in 2024",
}


@pytest.mark.parametrize("query", ["2024-03-15", "15.03.2024", "15.3.2024", "2024/03/15"])
def test_a_day_is_found_in_all_forms(index_of, query):
    index = index_of([{"id": id_, "text": text} for id_, text in DAYS.items()], ranker="bm25")
    days = DAYS.keys() - {"other"}
    assert {hit.id for hit in index.search(query, 20, match="all")} == days
    assert {hit.id for hit in index.search(query, len(days))} == days


def test_a_day_that_may_be_a_month_is_not_found_by_the_month_first(index_of):
    index = index_of(["on 3/5/2024", "on 5/3/2024", "March 5, 2024"], ranker="bm25")
    assert {hit.id for hit in index.search("2024-03-05", match="all")} == {"1", "2"}


@pytest.mark.parametrize("partitions", [1, 2])
def test_signs_are_the_same_in_all_forms(index_of, partitions):
    texts = {
        "typed": "a pipe of 1/2 inch",
        "sign": "½ inch pipe",
        "and a half": "3½ inch",
        "apart": "pages 1 and 2, 1 2, 1.2",
        "version": "version 4.2",
        "wide": "version ４．２",
        "models": "models 4.21 and 4 2",
    }
    rows = [{"id": id_, "text": text} for id_, text in texts.items()]
    index = index_of(rows, partitions=partitions, workers=1, ranker="bm25")
    for query in ("1/2", "1⁄2", "１／２"):
        found = {hit.id for hit in index.search(query, match="all")}
        assert found == {"typed", "sign", "and a half"}, query
    for query in ("4.2", "４.２", "４．２", "4．2"):
        found = [hit.id for hit in index.search(query)]
        assert {*found[:2]} == {"version", "wide"}, query
        assert {hit.id for hit in index.search(query, match="all")} == {"version", "wide"}, query


@pytest.mark.parametrize(
    "forms",
    [
        ["1250", "1,250", "1.250", "1 250", "1'250", "1’250", "1\u00a0250", "1\u202f250"],
        ["1250.5", "1250,5", "1,250.5", "1.250,5", "1 250,5", "1'250.5", "1\u202f250,5"],
        ["4500000", "4,500,000", "4.500.000", "4 500 000", "4’500’000", "4\u202f500\u202f000"],
        ["½", "1/2", "1⁄2", "１／２"],
        ["30x40", "30X40", "30×40", "30 x 40", "30 × 40"],
    ],
)
@pytest.mark.parametrize("language", ["english", "german"])
def test_a_number_is_found_in_all_forms(index_of, forms, language):
    texts = {f"price {form}": f"price {form} Euro" for form in forms}
    apart = ["price 500 250 Euro", "125 0 5 000 12 50 12", "1 car, 250 Euro", "4 000", "30 cm, 40"]
    index = index_of({**texts, **dict(enumerate(apart))}, language=language, ranker="bm25")
    for form in forms:
        for query in (form, f"price {form}"):
            assert {hit.id for hit in index.search(query, 20, match="all")} == {*texts}, query


def test_long_numbers_take_linear_time(numbers):
    assert codes_of("1" * 100_000) == ["1" * 100_000]
    assert numbers.search("1" * 100_000).total == 0


def test_other_signs_count_if_no_document_has_those_of_the_query(numbers):
    assert numbers.search("4_2", match="all").total > 0
    assert {hit.id for hit in numbers.search("screen 16/9", match="all")} == {"wide", "wider"}


def test_a_long_text_counts_without_being_read(index_of):
    texts = {"long": "4.2 " + "valve " * 20_000, "typed": "version 4.2", "apart": "steps 4 2"}
    found = index_of(texts).search("4.2", match="all")
    assert {hit.id for hit in found} == {"long", "typed"}
