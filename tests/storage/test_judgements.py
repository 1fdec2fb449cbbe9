"""Judgements outlive generations, concurrent writers and kills."""

import threading

import pytest

from klsa_search.collection import read_qrels, read_queries
from klsa_search.collection.queries import qrels_text
from klsa_search.errors import ArgumentError, BadDocument, IndexNotFound, QueryError
from klsa_search.storage.judgements import Judgements
from tests.support.waiting import PATIENCE

from .worlds import write


@pytest.fixture
def index(tmp_path):
    write(tmp_path / "index", "one")
    return tmp_path / "index"


def told(folder, query=None):
    return [
        (each.number, each.text, dict(each.grades)) for each in Judgements(folder).queries(query)
    ]


def test_the_last_word_counts_and_can_be_taken_back(index):
    judgements = Judgements(index)
    assert told(index) == []
    assert judgements.remove("wing", "1") == 0
    assert not (index / "CATALOG-ID").exists()  # reading makes nothing
    judgements.put("wing", "2", 1)
    judgements.put("heat", "1", 0)
    judgements.put("wing", "1", -1)
    judgements.put("wing", "2", 3)
    assert told(index) == [(1, "wing", {"1": -1, "2": 3}), (2, "heat", {"1": 0})]
    assert told(index, "heat") == [(2, "heat", {"1": 0})]
    assert judgements.remove("wing", "1") == 1
    assert judgements.remove("wing", "nobody") == 0
    assert judgements.remove("wing") == 1
    assert told(index) == [(2, "heat", {"1": 0})]
    judgements.put("wing", "2", 1)  # its number is its own for ever
    assert told(index)[0] == (1, "wing", {"2": 1})
    with pytest.raises(IndexNotFound):
        Judgements(index.parent / "none").put("wing", "1", 1)


def test_white_space_makes_no_other_query(index):
    Judgements(index).put("  hot\n wings\t", "1", 1)
    assert told(index, "hot wings") == [(1, "hot wings", {"1": 1})]


@pytest.mark.parametrize(
    ("query", "document", "grade", "kind", "said"),
    [
        (" ", "1", 1, QueryError, "0 characters"),
        ("x" * 10_001, "1", 1, QueryError, "10,001 characters"),
        ("\ud800", "1", 1, QueryError, "Unicode|UTF-8|surrogate|U\\+D800"),
        ("a\0", "1", 1, QueryError, "NUL"),
        (None, "1", 1, ArgumentError, "give a text"),
        ("wing", "x" * 600, 1, BadDocument, "600 bytes"),
        ("wing", "1", 101, QueryError, "from -100 to 100"),
        ("wing", "1", 1.0, QueryError, "whole number"),
        ("wing", "1", True, QueryError, "whole number"),
    ],
)
def test_invalid_judgements_are_refused(index, query, document, grade, kind, said):
    with pytest.raises(kind, match=said):
        Judgements(index).put(query, document, grade)
    assert told(index) == []


def test_several_write_at_once_and_nothing_is_lost(index):
    def work(number):
        for n in range(20):
            Judgements(index).put(f"query {n % 3}", f"{number}/{n}", n % 2)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sum(len(grades) for _, _, grades in told(index)) == 80
    assert sorted(number for number, _, _ in told(index)) == [1, 2, 3]


def test_files_of_them_are_read_back(index, tmp_path):
    judgements = Judgements(index)
    judgements.put("heat of  wings", "a/b", 2)
    judgements.put("\tcold", "c", 0)
    found = judgements.queries()
    (tmp_path / "own.qrels").write_text(
        qrels_text(one for each in found for one in each.judgements())[0]
    )
    (tmp_path / "own.tsv").write_text("".join(each.as_line() for each in found))
    assert (tmp_path / "own.qrels").read_text() == "1 0 a/b 2\n2 0 c 0\n"
    assert read_qrels(tmp_path / "own.qrels") == [
        one for each in found for one in each.judgements()
    ]
    assert [(each.id, each.text) for each in read_queries(tmp_path / "own.tsv")] == [
        ("1", "heat of wings"),
        ("2", "cold"),
    ]
    judgements.put("cold", "a b", 1)
    judgements.put("cold", "tab\there", 2)
    text, left_out = qrels_text(one for each in judgements.queries() for one in each.judgements())
    assert text == (tmp_path / "own.qrels").read_text()
    assert [(each.document_id, each.grade) for each in left_out] == [("a b", 1), ("tab\there", 2)]
