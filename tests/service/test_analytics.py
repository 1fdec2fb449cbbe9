"""Analytics: what is recorded, counted, kept, listed and proposed."""

import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from klsa_search.cli.index import klsa_index
from klsa_search.errors import StoreError
from klsa_search.mining.synonym_proposals import SearchedQuery, propose_synonyms
from klsa_search.search.index import open_index
from klsa_search.service.admission import Writes
from klsa_search.service.analytics import recorder as recording
from klsa_search.service.analytics import store as storing
from klsa_search.service.analytics.recorder import Recorder, normalised
from klsa_search.service.analytics.reports import as_csv, report, searched_queries
from klsa_search.service.analytics.store import EventRow, SearchRow, Store
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

from .conftest import build_tiny, failure_of

URL = "/indexes/first/analytics"
EVENTS = "/indexes/first/events"


@pytest.fixture
def recorder(home):
    with_file = Recorder(home, days=90, min_searches=1)
    yield with_file
    with_file.close()


@pytest.fixture
def client(client_of, home, recorder):
    return client_of(home, writes=Writes(), recorder=recorder)


def search(client, q, index="first", **options):
    answer = client.post("/search", json={"q": q, "index": index, **options})
    assert answer.status_code == 200, answer.text
    return answer.json()


def click(client, answer, place=0, **more):
    hit = answer["hits"][place]
    body = {"type": "click", "search_id": answer["search_id"], "id": hit["id"]}
    said = client.post(EVENTS, json={**body, "position": hit["rank"], **more})
    assert (said.status_code, said.json()) == (202, {"accepted": True})


def counts(rows, *names):
    return [tuple(row[name] for name in ("query", *names)) for row in rows]


def test_a_day_at_the_help_desk(client, recorder):
    for q in ("wing", " WING ", "wing"):
        found = search(client, q)
    click(client, found)
    click(client, found)  # counts once
    click(client, found, 1)
    heat = search(client, "heat", quality=True)
    click(client, heat)
    client.post(EVENTS, json={"type": "conversion", "search_id": heat["search_id"], "id": "3"})
    search(client, "wing", offset=1)  # a further page
    search(client, "wing", analytics=False)
    search(client, "helicopter", spelling="off")
    search(client, "helicopter", spelling="off")
    low = search(client, "snow over the roofs of an old town", quality=True)
    assert low["good_match"] is False
    assert "search_id" not in search(client, " ")
    recorder.flush()
    got = client.get(URL).json()
    assert got["totals"] | {"mean_ms": 0} == {
        "searches": 7,
        "no_results": 2,
        "low_quality": 1,
        "corrected": 0,
        "expanded": 0,
        "clicked": 2,
        "clicks": 3,
        "conversions": 1,
        "click_through": 0.2857,
        "mean_position": 1.33,
        "mean_ms": 0,
    }
    assert counts(got["queries"], "searches", "clicks", "click_through", "mean_position") == [
        ("wing", 3, 2, 0.3333, 1.5),
        ("helicopter", 2, 0, 0, None),
        ("heat", 1, 1, 1, 1),
        ("snow over the roofs of an old town", 1, 0, 0, None),
    ]
    assert counts(got["no_results"], "no_results") == [("helicopter", 2)]
    assert counts(got["low_quality"], "low_quality") == [(low["query"], 1)]
    clicked = {row["id"]: (row["clicks"], row["conversions"]) for row in got["documents"]}
    assert clicked == {found["hits"][0]["id"]: (1, 0), "a/b c?%": (2, 0), "3": (0, 1)}
    assert [row["day"] for row in got["days"]] == [today()]
    table = client.get(f"{URL}.csv", params={"list": "no_results"})
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    head, row = table.text.splitlines()
    assert head.startswith(
        "query,searches,no_results,low_quality,corrected,expanded,clicked,clicks"
    )
    assert row.startswith("helicopter,2,2,0,0,0,0,0,0,0.0,,")
    assert client.get("/indexes/second/analytics").json()["queries"] == []


def today():
    return datetime.now(UTC).date().isoformat()


def test_without_analytics_nothing_is_recorded(indexes_of, home):
    client = AppClient(app_of_indexes(indexes_of(home), writes=Writes()))
    assert "search_id" not in search(client, "wing")
    event = {"type": "click", "search_id": "0" * 16, "id": "1", "position": 1}
    assert failure_of(client.post(EVENTS, json=event), 403)["code"] == "analytics_off"
    assert failure_of(client.get(URL), 403)["code"] == "analytics_off"
    assert not list(home.glob(".analytics*"))


def test_tenants_record_clicks_on_documents_that_they_see(indexes_of, home, recorder):
    keys = home / "keys.json"
    reader = add_key(keys, "reader", ("search",))
    writer = add_key(keys, "writer", ("search", "write"))
    app = app_of_indexes(
        indexes_of(home), writes=Writes(), recorder=recorder, keys=Keys(keys, ("search",))
    )
    client = AppClient(app, raise_server_exceptions=False)

    def token_of(key):
        body = {"filters": {"first": "year > 1940"}, "expires_in": 3600}
        answer = client.post("/tenant-tokens", json=body, headers={"X-API-Key": key})
        return {"X-API-Key": answer.json()["token"]}

    tenant = token_of(reader)
    everything = client.post("/search", json={"q": "wing heat", "index": "first"},
                             headers={"X-API-Key": reader}).json()["hits"]  # fmt: skip
    found = client.post("/search", json={"q": "wing heat", "index": "first"}, headers=tenant).json()
    (hidden, *_) = {hit["id"] for hit in everything} - {hit["id"] for hit in found["hits"]}

    def click_on(id_):
        event = {"type": "click", "search_id": found["search_id"], "id": id_, "position": 1}
        return client.post(EVENTS, json=event, headers=tenant)

    seen = found["hits"][0]["id"]
    assert click_on(seen).status_code == 202
    for id_ in (hidden, "no document"):
        assert failure_of(click_on(id_), 404)["code"] == "document_not_found"
    for path in (URL, f"{URL}.csv", f"{URL}/synonyms"):
        for headers in (tenant, token_of(writer)):
            assert failure_of(client.get(path, headers=headers), 403)
    recorder.flush()
    clicked = client.get(URL, headers={"X-API-Key": writer}).json()["documents"]
    assert [each["id"] for each in clicked] == [seen]


def test_searches_of_all_routes_are_recorded(client, recorder):
    search(client, "wing")
    queries = [{"q": "heat", "index": "first"}, {"q": "flow", "index": "first"}]
    client.post("/multi-search", json={"queries": queries})
    for q in ("w", "wa", "wall"):  # only the last counts
        assert search(client, q, analytics="typing")["search_id"]
    client.get("/suggest?q=suggested&index=first")
    recorder.flush()
    Store(recorder.home).settle(datetime.now(UTC).timestamp() + 60)
    found = {row["query"] for row in client.get(URL).json()["queries"]}
    assert found == {"wing", "heat", "flow", "wall"}


def test_other_events_are_refused(client, recorder):
    values = {
        "type": ["view"],
        "search_id": ["1", "f" * 16, 7],  # the second is more than SQLite's integers
        "id": ["", "x" * 5000, "\0"],
        "position": [0, None, 10**30],
        "user": ["me"],
        "previous": ["x"],
    }
    for field, value in ((name, value) for name in values for value in values[name]):
        event = {"type": "click", "search_id": "0" * 16, "id": "1", "position": 1, field: value}
        assert failure_of(client.post(EVENTS, json=event), 422)["field"] == field, value
    assert recorder.waiting == 0


def test_hostile_queries_are_text(client, recorder):
    hostile = [
        '=HYPERLINK("http://evil.example","wing")',
        "'; drop table searches; --",
        "wing\0\x1b[31m\r\nwing",
        "ﬁve  ＷＩＮＧ",
        "wing " * 2000,
        "+1",
    ]
    for q in hostile:
        search(client, q)
    event = {"type": "click", "search_id": "0" * 16, "id": "'\"", "position": 1}
    client.post(EVENTS, json=event)  # of no search
    recorder.flush()
    found = {row["query"] for row in client.get(URL).json()["queries"]}
    assert {"wing [31m wing", "five wing", "+1", normalised("wing " * 2000)} <= found
    assert len(found) == len(hostile)
    assert max(map(len, found)) <= recording.MAX_QUERY
    table = client.get(f"{URL}.csv").text
    assert "\n+1," in table  # a number
    assert "\n\"'=hyperlink(" in table
    assert client.get(URL).json()["documents"] == []


def test_an_alias_is_its_index(client, recorder):
    assert client.put("/aliases/shop", json={"index": "first"}).status_code == 200
    search(client, "wing", index="shop")
    recorder.flush()
    assert client.get("/indexes/shop/analytics").json()["index"] == "first"
    assert counts(client.get(URL).json()["queries"], "searches") == [("wing", 1)]
    assert failure_of(client.get("/indexes/none/analytics"), 404)["code"] == "index_not_found"


def test_an_event_belongs_to_the_index_of_its_search(client, recorder):
    found = search(client, "wing")
    body = {"type": "click", "search_id": found["search_id"], "id": "1", "position": 1}
    assert client.post("/indexes/second/events", json=body).status_code == 202
    recorder.flush()
    assert client.get(URL).json()["totals"]["clicks"] == 0
    assert client.get("/indexes/second/analytics").json()["documents"] == []


def test_rows_of_a_deleted_index_are_deleted(client, recorder, home):
    search(client, "wing")
    search(client, "wing", index="second")
    assert client.delete("/indexes/first").status_code == 200
    build_tiny(home, "first")
    assert client.get(URL).json()["totals"]["searches"] == 0
    assert client.get("/indexes/second/analytics").json()["totals"]["searches"] == 1
    assert client.delete("/indexes/second/analytics").json() == {"index": "second"}
    assert client.get("/indexes/second/analytics").json()["totals"]["searches"] == 0


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def row(seconds, query, *, status="counted", index="first", hits=1, now=NOON):
    id_ = int(1000 * (now.timestamp() + seconds)) << storing.ID_BITS
    return SearchRow(id_, index, query, hits, None, False, False, 100, status)


def stored(home, sql="select query, status from searches order by id"):
    with sqlite3.connect(home / storing.FILE) as database:
        return database.execute(sql).fetchall()


def settled(home, *rows, after=60):
    store = Store(home)
    store.add(rows, [])
    store.settle(NOON.timestamp() + after)
    store.close()
    return [query for query, status in stored(home) if status == "counted"]


def typed(*queries, begin=0.0, step=0.3):
    return [row(begin + step * at, q, status="typing") for at, q in enumerate(queries)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (typed("p", "pri", "printer", "printe", "print", "printe", "printer"), ["printer"]),
        (typed("vpn") + typed("wifi", begin=1), ["vpn", "wifi"]),
        (typed("vpn") + typed("vpn client", begin=11), ["vpn", "vpn client"]),
        (typed("vpn") + typed("vpn client", begin=9), ["vpn client"]),
        ([*typed("vpn"), row(3, "vpn")], ["vpn"]),  # typed, then sent
        ([row(0, "vpn"), *typed("vpn", begin=3)], ["vpn"]),
        ([row(0, "vpn"), row(1, "vpn client")], ["vpn", "vpn client"]),  # whole searches count
        ([*typed("vpn"), row(2, "vpn client", index="second")], ["vpn", "vpn client"]),
        ([*typed("vpn"), row(1, "vpn", status="page")], ["vpn"]),
        (typed("vpn", begin=50), []),  # not yet decided
    ],
)
def test_the_last_query_while_typing_counts(tmp_path, rows, expected):
    assert settled(tmp_path, *rows) == expected


def test_a_clicked_search_counts(tmp_path):
    first, *others = typed("print", "printer")
    store = Store(tmp_path)
    store.add([first, *others], [EventRow(first.id, "first", "click", "1", 2)])
    store.settle(NOON.timestamp() + 60)
    store.close()
    assert stored(tmp_path, "select query, searches, clicked from recent_queries") == [
        ("print", 1, 1),
        ("printer", 1, 0),
    ]


def test_ended_days_become_counts_without_rare_queries(tmp_path):
    searches = [row(at, "wing") for at in range(3)] + [row(5, "my name"), row(6, "other")]
    store = Store(tmp_path)
    store.add(searches, [EventRow(searches[0].id, "first", "click", "1", 2)])
    store.add([], [EventRow(searches[3].id, "first", "click", "3", 1)])
    store.roll_up(NOON + timedelta(hours=12, minutes=59), days=90, least=2)
    assert len(stored(tmp_path)) == 5  # events may still come
    for _ in range(2):  # the second changes nothing
        store.roll_up(NOON + timedelta(hours=13, minutes=1), days=90, least=2)
        assert stored(tmp_path) == []
        sums = "select day, query, searches, clicks, positions from queries order by query"
        assert stored(tmp_path, sums) == [
            ("2026-03-01", "", 2, 1, 1),
            ("2026-03-01", "wing", 3, 1, 2),
        ]
        assert stored(tmp_path, "select query, document, clicks from documents") == [
            ("", "3", 1),
            ("wing", "1", 1),
        ]
    assert stored(tmp_path, "select count(*) from events") == [(0,)]
    store.roll_up(NOON + timedelta(days=90), days=90, least=2)
    assert len(stored(tmp_path, "select * from queries")) == 2
    store.roll_up(NOON + timedelta(days=91), days=90, least=2)
    assert stored(tmp_path, "select * from queries") == []
    assert stored(tmp_path, "select * from documents") == []
    store.close()
    assert b"my name" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_rare_queries_are_not_listed(home, indexes_of):
    recorder = Recorder(home, days=90, min_searches=2)
    client = AppClient(app_of_indexes(indexes_of(home), writes=Writes(), recorder=recorder))
    for q in ("wing", "wing", "my name"):
        search(client, q)
    recorder.flush()
    got = client.get(URL).json()
    assert counts(got["queries"], "searches") == [("wing", 2)]
    assert (got["totals"]["searches"], got["min_searches"]) == (3, 2)
    assert "my name" not in client.get(f"{URL}.csv").text + client.get(f"{URL}/synonyms").text
    recorder.close()


def test_two_processes_share_the_file(home, indexes_of):
    recorders = [Recorder(home, days=90, min_searches=1) for _ in range(2)]
    clients = [
        AppClient(app_of_indexes(indexes_of(home), recorder=recorder)) for recorder in recorders
    ]
    found = search(clients[0], "wing")
    click(clients[1], found)  # the click arrives at the other, and is stored first
    recorders[1].flush()
    recorders[0].flush()
    search(clients[1], "wing")
    recorders[1].flush()
    (got,) = clients[0].get(URL).json()["queries"]
    assert (got["searches"], got["clicked"]) == (2, 1)
    for each in recorders:
        each.close()


@pytest.mark.parametrize("method", ["delete", "forget"])
def test_a_deletion_is_of_rows_that_wait_in_other_processes_too(home, method):
    with (
        Recorder(home, days=90, min_searches=1) as one,
        Recorder(home, days=90, min_searches=1) as other,
        open_index(home / "first") as index,
    ):
        results = index.search("wing")
        search_id = int(one.record("first", "wing", results, 0.001, typing=False), 16)
        one.add(EventRow(search_id, "first", "click", "1", 1))
        one.record("second", "kept", results, 0.001, typing=False)
        getattr(other, method)("first")
        one.flush()
        assert stored(home, "select query from searches") == [("kept",)]
        assert stored(home, "select * from events") == []
        one.record("first", "later", results, 0.001, typing=False)
        one.flush()
        assert stored(home, "select query from searches order by 1") == [("kept",), ("later",)]


def test_a_clock_that_was_set_back_loses_no_search(tmp_path, monkeypatch):
    store = Store(tmp_path)
    with monkeypatch.context() as ahead:
        ahead.setattr("time.time", lambda: 2e9)
        store.forget("first")
    store.add([row(0, "wing")], [])
    store.close()
    assert stored(tmp_path, "select query from searches") == [("wing",)]


def test_a_full_disk_loses_events_and_no_search(client, recorder, monkeypatch, caplog):
    search(client, "wing")
    recorder.flush()
    monkeypatch.setattr(storing, "MAX_BYTES", 0)
    monkeypatch.setattr(recording, "MAX_QUEUE", 3)
    for _ in range(5):
        assert search(client, "wing")["hits"]
    with pytest.raises(StoreError, match="maximum size"):
        recorder.flush()
    assert (recorder.waiting, recorder.lost) == (3, 2)
    metrics = client.get("/metrics").text
    assert "klsa_analytics_lost_total 2.0" in metrics
    assert "klsa_analytics_queued 3.0" in metrics
    monkeypatch.undo()
    recorder.flush()  # there is space again
    assert client.get(URL).json()["totals"]["searches"] == 4
    assert search(client, "wing")["search_id"]


def test_a_locked_or_damaged_file_fails_no_search(client, recorder, home, monkeypatch):
    search(client, "wing")
    recorder.flush()
    monkeypatch.setattr(storing, "TIMEOUT", 0.01)
    recorder.close()
    locked = sqlite3.connect(home / storing.FILE, isolation_level=None)
    locked.execute("begin immediate")
    assert search(client, "wing")["hits"]
    with pytest.raises(StoreError, match="locked"):
        recorder.flush()
    assert recorder.waiting == 1
    locked.execute("rollback")
    locked.close()
    recorder.flush()
    assert client.get(URL).json()["totals"]["searches"] == 2
    recorder.close()
    for path in home.glob(".analytics*"):
        path.write_bytes(b"noise" * 1000)
    assert search(client, "wing")["hits"]
    with pytest.raises(StoreError, match="not a database"):
        recorder.flush()
    assert failure_of(client.get(URL), 503)["code"] == "index_unusable"
    (home / storing.FILE).unlink()
    recorder.flush()
    assert client.get(URL).json()["totals"]["searches"] == 1


def test_a_removed_file_is_made_again_for_its_owner_only(client, recorder, home):
    search(client, "wing")
    recorder.flush()
    for path in home.glob(".analytics*"):
        path.unlink()
    search(client, "heat")
    recorder.flush()
    assert counts(client.get(URL).json()["queries"], "searches") == [("heat", 1)]
    assert {path.stat().st_mode & 0o777 for path in home.glob(".analytics*")} == {0o600}


CRASH = """
import os, sys
from pathlib import Path
sys.path.insert(0, ".")
from klsa_search.service.analytics.store import Store, SearchRow
store = Store(Path(sys.argv[1]))
store.add([SearchRow(1 << 60, "first", "wing", 1, None, False, False, 1, "counted")], [])
with store._transaction() as database:
    database.execute("delete from searches")
    os.kill(os.getpid(), 9)
"""


def test_a_killed_process_leaves_whole_batches(tmp_path):
    killed = subprocess.run([sys.executable, "-c", CRASH, str(tmp_path)], check=False, timeout=60)
    assert killed.returncode == -9
    assert stored(tmp_path) == [("wing", "counted")]
    store = Store(tmp_path)
    store.add([row(0, "heat")], [])
    store.close()
    assert len(stored(tmp_path)) == 2


def test_rows_of_csv_stay_rows_and_no_id_is_a_formula(home, capfd):
    """IDs keep blanks and line ends of any kind, unlike queries."""
    store, hostile = Store(home), (" =1+1", "a\u2028b", "\x85", "＝2")
    heat = row(0, "heat", now=datetime.now(UTC))
    store.add([heat], [EventRow(heat.id, "first", "click", id_, 1) for id_ in hostile])
    store.close()
    _, *rows = as_csv(report(home, "first", days=30, k=9, least=1), "documents").split("\n")[:-1]
    assert sorted(line.rpartition(",1,")[0] for line in rows) == sorted(
        ("' =1+1", "a\u2028b", "\x85", "'＝2")
    )
    arguments = ["analytics", "first", "--home", str(home), "--list", "documents", "--csv"]
    klsa_index(arguments, standalone_mode=False)
    assert len(capfd.readouterr().out.splitlines()) == 1 + len(hostile)


def test_only_the_documented_columns_are_stored(client, recorder, home):
    """No address, key, user name or filter: exactly these columns."""
    client.post(
        "/search",
        json={"q": "wing", "index": "first", "filter": "year > 1940"},
        headers={"X-Forwarded-For": "192.0.2.7", "User-Agent": "secret-agent"},
    )
    recorder.flush()
    columns = {
        table: [name for _, name, *_ in stored(home, f"pragma table_info({table})")]
        for table in ("searches", "events")
    }
    assert columns == {
        "searches": [
            *("id", "index", "query", "hits", "good"),
            *("corrected", "expanded", "microseconds", "status"),
        ],
        "events": ["search", "index", "type", "document", "position", "next"],
    }
    content = b"".join(path.read_bytes() for path in home.glob(".analytics*"))
    assert not any(word in content for word in (b"192.0.2", b"secret-agent", b"1940"))


HELP = [
    {"id": str(n), "title": title, "text": text}
    for n, (title, text) in enumerate(
        [
            (
                "Notebook battery",
                "Charge the notebook battery before you travel with the notebook.",
            ),
            ("Notebook charger", "Order a charger for your notebook."),
            ("Notebook screen", "A cracked screen of a notebook is replaced."),
            ("Printer paper", "Load paper into the printer."),
            ("Printer toner", "Replace the toner of the printer."),
            ("Holiday request", "Ask for a holiday in the portal."),
        ]
    )
]


def test_a_word_that_visitors_replaced_is_proposed_and_then_found(indexes_of, tmp_path):
    build_tiny(tmp_path, "first", HELP)
    recorder = Recorder(tmp_path, days=90, min_searches=1)
    app = app_of_indexes(indexes_of(tmp_path), writes=Writes(), recorder=recorder)
    client = AppClient(app)
    for q, following in (
        ("laptop", "notebook"),
        ("laptop battery", "notebook battery"),
        ("laptop battery", "notebook charger"),  # more than the word changed
    ):
        in_vain = search(client, q, spelling="off")
        click(client, search(client, following), previous=in_vain["search_id"])
    recorder.flush()
    (proposal,) = client.get(f"{URL}/synonyms").json()["proposals"]
    assert proposal == {
        "word": "laptop",
        "searches": 3,
        "documents": 0,
        "queries": ["laptop battery", "laptop"],
        "candidates": [
            {
                "synonym": "notebook",
                "count": 2,
                "total": 2,
                "queries": ["notebook battery", "notebook"],
            }
        ],
    }
    assert client.get("/indexes/first/synonyms").json()["synonyms"] == {}  # never automatic
    client.put("/indexes/first/synonyms", json={"synonyms": {"laptops": ["notebook"]}})
    assert search(client, "laptop", spelling="off")["hits"]
    assert client.get(f"{URL}/synonyms").json()["proposals"] == []
    recorder.close()


@pytest.fixture
def shop(tmp_path):
    build_tiny(tmp_path, "first", HELP)
    with open_index(tmp_path / "first") as index:
        yield index


def best_of(index, *queries):
    return {
        proposal.word: [(each.synonym, each.count, each.total) for each in proposal.candidates]
        for proposal in propose_synonyms(index, queries)
    }


def test_only_a_word_that_was_replaced_alone_counts(shop):
    for query, replaced_by, expected in (
        ("laptops", {"notebook": 1}, []),  # once
        ("laptop", {"notebook": 2}, [("notebook", 2, 2)]),
        ("laptop", {"notebooks": 1, "notebook": 3, "telephone": 2}, [("notebook", 4, 6)]),
        ("laptop", {"notebook battery": 2}, [("notebook battery", 2, 2)]),
        ("laptop", {"portal notebook charger": 2}, []),  # another question
        ("laptop battery", {"battery": 4}, []),
        ("laptop fault", {"notebook screen": 4}, []),
        ("pritner", {"printer": 3}, [("printer", 3, 3)]),
    ):
        found = best_of(shop, SearchedQuery(query, 5, replaced_by))
        assert found == ({query.split()[0]: expected} if expected else {})


def test_replacements_outlive_the_day_without_rare_queries(tmp_path):
    searches = [
        row(at, query)
        for at, query in enumerate(["laptop", "notebook"] * 2 + ["my name", "notebook"])
    ]
    events = [
        EventRow(searches[at].id, "first", "later", "1", None, searches[at + 1].id)
        for at in (0, 2, 4)
    ]
    store = Store(tmp_path)
    store.add(searches, events)
    view = "select query, next, searches from all_replacements order by query"
    assert stored(tmp_path, view) == [("laptop", "notebook", 2), ("my name", "notebook", 1)]
    store.roll_up(NOON + timedelta(days=1), days=90, least=2)
    store.close()
    assert stored(tmp_path, view) == [("laptop", "notebook", 2)]
    (listed,) = [
        each
        for each in searched_queries(tmp_path, "first", days=3650, least=2)
        if each.text == "laptop"
    ]
    assert listed.replaced_by == {"notebook": 2}
