"""Rows of CSV and JSON lines have the hits of a search, and no formulas."""

import csv
import io
import json
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.errors import KlsaError
from klsa_search.search.parts import exports
from tests.support.examples import one_in

COUNT = 60
TITLES = ["=1+1", "+49 170", "-5", "@cmd", "=LINK(1)", "\t=x", 'Bär; "q",\n2', "plain"]


@pytest.fixture(
    scope="module",
    params=[pytest.param(1, marks=pytest.mark.slow), 2],
    ids=["one part", "two parts"],
)
def index(request, tmp_path_factory):
    rows = [
        {
            "id": f"r-{number}",
            "title": TITLES[number % len(TITLES)],
            "text": f"word {number}",
            "number": number,
            "tags": ["a", "b"][: number % 3],
            "maker": {"name": f"m{number}"},
        }
        for number in range(COUNT)
    ]
    home, options = tmp_path_factory.mktemp("home"), {"partitions": request.param, "workers": 1}
    with closing(build(rows, name="rows", home=home, **options)) as index:
        yield index


def rows_of(pieces):
    text = b"".join(pieces).decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))


@one_in(3)
@given(
    query=st.sampled_from(["word", "", "nothing"]),
    options=st.fixed_dictionaries(
        {"filter": st.sampled_from(["number < 41", "number >= 0"])},
        optional={"sort": st.just(["number:desc"]), "offset": st.integers(0, 50)},
    ),
    limit=st.none() | st.integers(1, 100),
    batch=st.integers(1, 70),
)
def test_rows_are_the_hits_of_the_search(index, query, options, limit, batch):
    columns = ["id", "rank", "maker.name", "tags"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exports, "BATCH", batch)
        header, *rows = rows_of(index.export(query, columns, limit=limit, **options))
        lines = b"".join(index.export(query, columns, format="jsonl", limit=limit, **options))
    hits = [json.loads(line) for line in lines.splitlines()]
    total = max(index.search(query, **options).total - options.get("offset", 0), 0)
    assert header == columns
    assert len(hits) == len({hit["id"] for hit in hits}) == min(total, limit or total)
    assert [row[:2] for row in rows] == [[hit["id"], str(hit["rank"])] for hit in hits]
    for row, hit in zip(rows, hits, strict=True):
        assert row[2:] == [hit["maker.name"], "; ".join(hit["tags"] or [])]
    if batch >= COUNT:
        found = index.search(query, COUNT, **options).hits[:limit]
        assert [hit["id"] for hit in hits] == [hit.id for hit in found]


def test_no_cell_is_a_formula(index):
    _, *rows = rows_of(index.export("word", ["title", "number"]))
    for title, _ in rows:
        assert title in {"-5", "'+49 170", *TITLES} or title[1:] in TITLES
        assert title == "-5" or title.lstrip()[:1] not in {*"=+-@"}
    assert ["-5", "2"] in rows
    lines = b"".join(index.export("word", ["title"], format="jsonl")).splitlines()
    assert {json.loads(line)["title"] for line in lines} == set(TITLES)


def test_columns_by_default_and_those_that_do_not_exist(index):
    header, *_ = rows_of(index.export("word", limit=1))
    assert header[:5] == ["rank", "id", "score", "title", "snippet"]
    assert {"number", "tags"} <= set(header)
    for columns, options, field in (
        (["colour"], {}, "columns"),
        ("id", {}, "columns"),
        ([], {"rerank": 3}, "rerank"),
        ([], {"format": "xls"}, "format"),
        ([], {"limit": 0}, "limit"),
    ):
        with pytest.raises(KlsaError) as error:
            index.export("word", columns, **options)
        assert error.value.field == field
