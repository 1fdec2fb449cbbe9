"""/metrics: counters, with labels that requests cannot choose."""

import json
import os
import re
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from klsa_search.errors import StoreError
from klsa_search.service.admission import Admission, Writes
from klsa_search.service.background import Replication
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.middleware.clients import Rates
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.storage.repository import ReplicationState, write_state
from tests.conftest import ROOT
from tests.service.conftest import failure_of
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import wait_until


@pytest.fixture
def client(home, tmp_path):
    """A service that has all there can be to measure."""
    folder = tmp_path / "replicated"
    folder.mkdir()
    state = ReplicationState("kept", "000001-0.json", 1, "2026-01-01T00:00:00+00:00", 1)
    write_state(folder, "backup", state)
    write_state(folder, "follow", state)
    with OpenIndexes(home, interval=0) as open_indexes:
        app = app_of_indexes(
            open_indexes,
            replications=[Replication(work, folder, ()) for work in ("backup", "follow")],
            writes=Writes(),
            jobs=Jobs(open_indexes, (), share=1),
            keys=Keys(tmp_path / "keys.json", {"search", "write", "metrics"}),
            rates=Rates(1e6),
        )
        yield AppClient(app, raise_server_exceptions=False)


def measured(client, **headers):
    """Value of each sample by its name and the values of its labels."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_requests_are_counted_by_route_method_and_status(client):
    client.get("/search?q=wing&index=first")
    client.get("/search?q=wing&index=first")
    client.head("/documents/1?index=first")
    client.get("/documents/none?index=first")
    counted = measured(client)
    assert counted["klsa_requests_total", "GET", "/search", "200"] == 2
    assert counted["klsa_requests_total", "HEAD", "/documents/{id}", "200"] == 1
    assert counted["klsa_requests_total", "GET", "/documents/{id}", "404"] == 1
    assert counted["klsa_request_seconds_count", "/documents/{id}"] == 2


def test_searches_are_counted_by_ranker_and_phase(client):
    client.get("/search?q=wing&index=first")
    client.post("/search", json={"q": "wing", "index": "first", "ranker": "bm25"})
    client.get("/search?q=wing&index=none")
    counted = measured(client)
    for ranker in ("klsa", "bm25"):
        for phase in ("queue", "search", "serialisation"):
            assert counted["klsa_search_seconds_count", phase, ranker] == 1
            assert counted["klsa_search_seconds_sum", phase, ranker] > 0


def test_no_request_chooses_a_label(client):
    before = measured(client)
    client.get("/search?q=private&index=private&ranker=private")
    client.get("/private")
    client.get("/documents/private")
    client.request("PRIVATE", "/search?q=private")
    client.post("/indexes/private/search", json={"q": "private"})
    after = client.get("/metrics").text
    assert "private" not in after.lower()
    assert 'method="other"' in after
    for each in range(9):
        client.get(f"/{each}")
    assert len(measured(client)) < len(before) + 200


def test_metrics_describe_the_present_indexes(client, home):
    client.put("/indexes/first/documents/lamp", json={"text": "A lamp."})
    (home / "second" / "CURRENT").write_text("000009\n")
    counted = measured(client)
    assert counted["klsa_index_up", "first"] == 1
    assert counted["klsa_index_documents", "first"] == 6
    assert counted["klsa_index_log_position", "first"] == 1
    assert counted["klsa_index_changed_share", "first"] == pytest.approx(1 / 6)
    assert counted["klsa_index_built_timestamp_seconds", "first"] > 1e9
    assert counted["klsa_index_up", "second"] == 0


def test_refusals_are_counted(indexes_of, home):
    nowhere = Admission(running=1, waiting=-1)
    client = AppClient(app_of_indexes(indexes_of(home), admission=nowhere))
    for _ in range(3):
        failure_of(client.get("/search?q=wing&index=first"), 503)
    counted = measured(client)
    assert counted["klsa_refusals_total", "search", "full"] == 3
    assert counted["klsa_requests_total", "GET", "other", "503"] == 3


def test_refits_are_counted(indexes_of, home):
    refits = Jobs(indexes_of(home), ("false",), share=None)
    client = AppClient(app_of_indexes(indexes_of(home), jobs=refits))
    refits.request("first", "000001", {})
    assert refits.run_due()
    assert measured(client)["klsa_refits_total", "first", "failed"] == 1


def test_metrics_need_a_key_if_there_are_keys(client, tmp_path):
    search = add_key(tmp_path / "keys.json", "web", ["search"])
    watch = add_key(tmp_path / "keys.json", "watch", ["metrics"], ["first"])
    failure_of(client.get("/metrics"), 401)
    failure_of(client.get("/metrics", headers={"Authorization": f"Bearer {search}"}), 403)
    headers = {"Authorization": f"Bearer {watch}"}
    counted = measured(client, **headers)
    assert ("klsa_index_up", "first") in counted
    assert ("klsa_index_up", "second") not in counted
    failure_of(client.get("/search?q=wing&index=first", headers=headers), 403)


def test_head_and_openmetrics_are_answered(client):
    answer = client.head("/metrics")
    assert (answer.status_code, answer.content) == (200, b"")
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_the_page_has_every_metric(client):
    page = (ROOT / "docs" / "guides" / "monitoring.md").read_text(encoding="utf-8")
    written = set(re.findall(r"^\| `(klsa_\w+)`", page, re.MULTILINE))
    client.get("/search?q=wing&index=first")
    told = re.findall(r"^# TYPE (klsa_\w+) ", client.get("/metrics").text, re.MULTILINE)
    of_analytics = {"klsa_analytics_queued", "klsa_analytics_lost_total"}  # off here
    assert written - of_analytics == {name for name in told if not name.endswith("_created")}


def test_failing_writes_are_measured_until_one_succeeds(home, tmp_path, monkeypatch):
    watch = add_key(tmp_path / "keys.json", "watch", ["metrics"], ["first"])
    with OpenIndexes(home, interval=0) as open_indexes:
        app = app_of_indexes(open_indexes, writes=Writes(), keys=Keys(tmp_path / "keys.json", ()))
        client = AppClient(app, raise_server_exceptions=False)
        write = add_key(tmp_path / "keys.json", "all", ["write", "metrics"])
        client.headers["Authorization"] = f"Bearer {write}"
        monkeypatch.setattr("klsa_search.search.index.Index.write", full_disk)
        for name in ("first", "second"):
            failure_of(client.delete(f"/indexes/{name}/documents/1"), 503)
        failure_of(client.delete("/indexes/none/documents/1"), 404)
        assert failing(client) == {"first": 1, "second": 1}
        assert failing(client, Authorization=f"Bearer {watch}") == {"first": 1}
        monkeypatch.undo()
        assert client.delete("/indexes/first/documents/1").status_code == 200
        assert failing(client) == {"first": 0, "second": 1}


def full_disk(*_, **__):
    raise StoreError("cannot write the log (No space left on device); free space on the disk")


def failing(client, **headers):
    found = measured(client, **headers)
    return {labels[0]: n for (name, *labels), n in found.items() if name == FAILING}


FAILING = "klsa_index_writes_failing"

PROCESS = """
import sys
from pathlib import Path
from tests.support.client import AppClient
from klsa_search.errors import StoreError
from klsa_search.search.index import Index
from klsa_search.service.admission import Admission
from tests.support.application import app_of_indexes
from klsa_search.service.admission import Writes
from klsa_search.service.open_indexes import OpenIndexes

def full_disk(*_, **__):
    raise StoreError("no space")

admission = Admission(running=1, waiting=-1)
with OpenIndexes(Path(sys.argv[1]), interval=0) as open_indexes:
    client = AppClient(app_of_indexes(open_indexes, heavy=admission, writes=Writes()))
    client.get("/indexes/first/map")
    if sys.argv[2] == "failing":
        Index.write = full_disk
    client.delete("/indexes/first/documents/1")
    print(client.get("/metrics").text, client.get("/health").text, sep="\\f", end="\\f", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_each_process_has_the_metrics_of_all(home, tmp_path):
    """Whatever process answers, and though one of them ended, no counter goes back."""
    folder = tmp_path / "metrics"
    folder.mkdir()
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)}

    def started(what):
        return subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(home), what],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def told(process):
        text = process.communicate()[0]
        metrics, health, _ = text.split("\f")
        samples = [s for f in text_string_to_metric_families(metrics) for s in f.samples]
        found = {(s.name, *(s.labels[n] for n in sorted(s.labels))): s.value for s in samples}
        return found, json.loads(health)

    first = started("failing")
    wait_until(lambda: len(list(folder.glob("gauge_livesum_*.db"))) == 1)
    one, health = told(first)
    assert one["klsa_refusals_total", "heavy", "full"] == 1
    assert (one[FAILING, "first"], health["degraded"]) == (1, True)
    two, health = told(started("failing"))
    assert two["klsa_refusals_total", "heavy", "full"] == 2
    assert two["klsa_requests_total", "GET", "/indexes/{name}/map", "503"] == 2
    assert two["klsa_running", "write"] == 0
    assert two["process_open_fds",] < 1.5 * one["process_open_fds",]
    assert health["degraded"]
    three, health = told(started("writing"))
    assert three["klsa_refusals_total", "heavy", "full"] == 3
    assert (three[FAILING, "first"], health["degraded"], health["faults"]) == (0, False, [])
