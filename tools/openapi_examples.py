"""Write docs/reference/http-examples.md by requests to a service: python -m tools.openapi_examples.

The answers are those of an index of six reports. What differs from run to run, such as times, is
replaced by constants.
"""

import json
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from unittest import mock
from urllib.parse import quote, urlencode

from klsa_search import build
from klsa_search.search.index import Index
from klsa_search.service.admission import Admission, Writes
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.analytics.store import ID_BITS, EventRow, SearchRow, Store
from klsa_search.service.changes import ChangeNotices
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.middleware.bodies import LINES
from klsa_search.service.middleware.clients import Rates
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.signing import PAGE_HEADER
from tests.conftest import ROOT
from tests.project.test_public_api import METADATA, REPORTS
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

PAGE = ROOT / "docs" / "reference" / "http-examples.md"
WIDTH = 100
JSON = "application/json"
LAMP = {
    "id": "lamp",
    "title": "Lamps",
    "text": "A dim lamp means a weak battery.",
    "year": 2025,
    "_vectors": {"minilm": [0.12, -0.34, 0.08]},
}
NAMES = {"name": "reports"}
LEAK = {**NAMES, "id": "leak"}

PASSWORD = "k7wnq-c4hzb-m9xte-2rfvd"  # noqa: S105 - of an example
RULE = {
    "id": "tyres",
    "when": {"query_contains": "tyre"},
    "then": {"pin": [{"id": "grip", "position": 1}], "hide": ["copy"]},
}
REQUESTS = {
    "GET /": {},
    "GET /search": {
        "parameters": {"q": "leaking coolant", "filter": "year >= 2020", "facets": "about", "k": 2}
    },
    "POST /search": {
        "body": {
            "q": "leaking coolant",
            "filter": {"field": "year", ">=": 2020},
            "limit": 1,
            "highlight": True,
            "quality": True,
        }
    },
    "POST /indexes/{name}/search": {
        "parameters": NAMES,
        "body": {"q": "wet roads", "k": 1, "ranker": "bm25", "explain": True},
    },
    "POST /multi-search": {
        "body": {
            "queries": [
                {"q": "wet roads", "k": 1, "fields": ["title"]},
                {"q": '"lost coolant"', "k": 1, "fields": ["title"]},
            ]
        }
    },
    "GET /indexes/{name}/explain/{id}": {"parameters": {**LEAK, "q": "coolant hoses"}},
    "POST /indexes/{name}/explain/{id}": {
        "parameters": LEAK,
        "body": {"q": "coolant hoses", "ranker": "bm25"},
    },
    "POST /indexes/{name}/evaluate": {
        "parameters": NAMES,
        "body": {
            "queries": {"1": "leaking coolant", "2": "wet roads"},
            "judgements": {"1": {"leak": 2, "heat": 1}, "2": {"grip": 1}},
        },
    },
    "GET /documents/{id}": {"parameters": {"id": "leak"}},
    "GET /indexes/{name}/documents/{id}": {"parameters": {**LEAK, "span": "0-29"}},
    "GET /indexes": {},
    "GET /indexes/{name}": {"parameters": NAMES},
    "GET /indexes/{name}/documents/{id}/similar": {"parameters": {**LEAK, "k": 1}},
    "GET /indexes/{name}/documents/{id}/terms": {"parameters": {**LEAK, "k": 2}},
    "GET /indexes/{name}/map": {"parameters": NAMES},
    "POST /indexes/{name}/map": {"parameters": NAMES, "body": {"ids": ["leak", "grip"]}},
    "GET /indexes/{name}/terms/{term}/related": {
        "parameters": {**NAMES, "term": "coolant", "k": 2}
    },
    "POST /indexes/{name}/classify": {
        "parameters": NAMES,
        "body": {"labels": {"leak": "engine", "grip": "road"}, "texts": ["Hoses that leak."]},
    },
    "PUT /indexes/{name}/synonyms": {
        "parameters": NAMES,
        "body": {"synonyms": {"car": ["automobile"], "tyre": ["tire", "wheel"]}},
    },
    "PATCH /indexes/{name}/synonyms": {
        "parameters": NAMES,
        "body": {"synonyms": {"car": ["vehicle"]}},
    },
    "GET /indexes/{name}/synonyms": {"parameters": NAMES},
    "DELETE /indexes/{name}/synonyms": {"parameters": NAMES},
    "PUT /indexes/{name}/rules": {"parameters": NAMES, "body": {"rules": [RULE]}},
    "PUT /indexes/{name}/rules/{id}": {
        "parameters": {**NAMES, "id": "recent"},
        "body": {
            "id": "recent",
            "when": {"from": "2026-01-01T00:00:00+01:00"},
            "then": {"boost": [{"filter": "year >= 2020", "factor": 1.5}]},
        },
    },
    "GET /indexes/{name}/rules": {"parameters": NAMES},
    "GET /indexes/{name}/rules/{id}": {"parameters": {**NAMES, "id": "tyres"}},
    "DELETE /indexes/{name}/rules/{id}": {"parameters": {**NAMES, "id": "tyres"}},
    "DELETE /indexes/{name}/rules": {"parameters": NAMES},
    "PUT /indexes/{name}/judgements": {
        "parameters": NAMES,
        "body": {"q": "leaking coolant", "id": "leak", "grade": 2},
    },
    "GET /indexes/{name}/judgements": {"parameters": {**NAMES, "q": "leaking coolant"}},
    "GET /indexes/{name}/judgements.qrels": {"parameters": NAMES},
    "GET /indexes/{name}/judgements.tsv": {"parameters": NAMES},
    "DELETE /indexes/{name}/judgements": {
        "parameters": {**NAMES, "q": "leaking coolant", "id": "leak"}
    },
    "POST /indexes/{name}/analyze": {"parameters": NAMES, "body": {"text": "The roads were wet"}},
    "GET /indexes/{name}/spectrum": {"parameters": NAMES},
    "GET /suggest": {"parameters": {"q": "wet r", "k": 3}},
    "GET /indexes/{name}/export": {"parameters": {**NAMES, "q": "coolant", "columns": "id,title"}},
    "POST /indexes/{name}/export": {
        "parameters": NAMES,
        "body": {"q": "coolant", "columns": ["id", "title", "year"], "limit": 2},
    },
    "POST /indexes/{name}/suggest": {
        "parameters": NAMES,
        "body": {"q": "coo", "k": 2, "filter": {"field": "year", ">=": 2020}},
    },
    "GET /indexes/{name}/suggest": {"parameters": {**NAMES, "q": "coo", "k": 2}},
    "POST /indexes/{name}/facet-search": {
        "parameters": NAMES,
        "body": {"field": "about", "facet_query": "en", "filter": "year >= 2018"},
    },
    "GET /health": {},
    "GET /health/live": {},
    "GET /health/ready": {},
    "GET /metrics": {},
    "POST /indexes/{name}/documents": {
        "parameters": NAMES,
        "body": [LAMP, {"id": "horn", "text": "A horn that will not sound."}],
        "lines": [LAMP, {"id": "horn"}],
    },
    "PATCH /indexes/{name}/documents": {
        "parameters": NAMES,
        "body": [{"id": "leak", "year": 2021}, {"id": "grip", "title": "Grip"}],
        "lines": [{"id": "leak", "year": 2021}],
    },
    "POST /indexes/{name}/sync": {
        "parameters": {**NAMES, "dry_run": True, "max_delete": "100%", "ids": True},
        "lines": [LAMP, {"id": "horn", "text": "A horn that will not sound."}],
    },
    "PUT /indexes/{name}/files/{file}": {
        "parameters": {**NAMES, "file": "lamps.csv", "preview": 1},
        "body": "Id;Subject;Body;Year\n7;Lamps;A dim lamp means a weak battery.;2025\n8;Horns\n",
    },
    "PUT /indexes/{name}/documents/{id}": {
        "parameters": {**NAMES, "id": "lamp"},
        "body": {name: value for name, value in LAMP.items() if name != "id"},
    },
    "PATCH /indexes/{name}/documents/{id}": {
        "parameters": LEAK,
        "body": {"title": "Leaking hoses", "year": None},
    },
    "DELETE /indexes/{name}/documents/{id}": {"parameters": {**NAMES, "id": "lamp"}},
    "POST /indexes/{name}/documents/delete-batch": {
        "parameters": NAMES,
        "body": ["horn", "lamp"],
    },
    "PUT /aliases/{name}": {
        "parameters": {"name": "reports-live"},
        "body": {"index": "reports"},
    },
    "GET /aliases": {},
    "POST /tenant-tokens": {
        "body": {"filters": {"reports": 'about = "engines"'}, "expires_in": 600},
    },
    "POST /users": {"body": {"name": "anna", "scopes": ["search", "write"]}},
    "GET /users": {},
    "POST /sign-in": {"body": {"name": "anna", "password": PASSWORD}},
    "DELETE /users/{name}": {"parameters": {"name": "anna"}},
    "POST /session": {},
    "GET /session": {},
    "DELETE /session": {},
    "DELETE /aliases/{name}": {"parameters": {"name": "reports-live"}},
    "PATCH /indexes/{name}": {"parameters": NAMES, "body": {"settings": {"alpha": 0.5}}},
    "POST /indexes/{name}/refit": {"parameters": NAMES, "body": {}},
    "GET /jobs": {"parameters": {"index": "reports"}},
    "GET /jobs/{id}": {"parameters": {"id": 1}},
    "DELETE /jobs/{id}": {"parameters": {"id": 1}},
    "POST /indexes/{name}/events": {
        "parameters": NAMES,
        "body": {"type": "click", "search_id": "0668a0c2b1f3d47e", "id": "leak", "position": 1},
    },
    "GET /indexes/{name}/analytics": {"parameters": {**NAMES, "days": 7, "k": 1}},
    "GET /indexes/{name}/analytics.csv": {"parameters": {**NAMES, "list": "no_results"}},
    "GET /indexes/{name}/analytics/synonyms": {"parameters": {**NAMES, "days": 7}},
    "DELETE /indexes/{name}/analytics": {"parameters": NAMES},
    "POST /indexes": {"body": {"name": "shop", "settings": {"fields": ["price:number"]}}},
    "DELETE /indexes/{name}": {"parameters": NAMES},
}
"""The request to each route: in this order, as some write."""

WITH_KEY = {
    "POST /tenant-tokens",
    "POST /users",
    "GET /users",
    "POST /sign-in",
    "DELETE /users/{name}",
}
"""Routes whose requests have an API key."""

ALIKE = {
    "token": "eyJhbGciOi...",
    "expires": "2026-03-01T09:40:00Z",
    "time_ms": 1.25,
    "started": "2026-03-01T09:30:00Z",
    "created": "2026-03-01T09:30:00Z",
    "version": "1.0.0",
    "fingerprint": "5f0c2f1d9a3b7c64",
    "source": "reports.jsonl",
    "bytes": 4096,
    "since": "2026-02-23",
    "day": "2026-03-01",
    "checksums": {"reports": "verified"},
}
"""What differs from run to run, or from machine to machine, and what stands in its place."""


def main():
    """Write the page."""
    PAGE.write_text("\n\n".join(page(examples())) + "\n", encoding="utf-8")


def page(told):
    """Yield the parts of the page."""
    yield "# HTTP examples"
    yield "<!-- generated by: python -m tools.openapi_examples -->"
    yield (
        "A request to each endpoint of the [HTTP API](http-api.md), and its answer from an "
        "index of six reports. Requests with a body are sent with its `Content-Type`."
    )
    for route, example in told["operations"].items():
        yield f"## `{route}`"
        yield block("text", f"{route.split()[0]} {address(route, example)}")
        if "body" in example:
            body = example["body"]
            yield block("text", body) if isinstance(body, str) else block("json", spread(body))
        if "lines" in example:
            either = "or, with" if "body" in example else "with"
            yield f"{either} `Content-Type: application/x-ndjson`,"
            yield block("text", in_lines(example["lines"]))
        for kind, answer in example["answers"].items():
            yield f"Answer as {kind}:" if kind == LINES else f"Answer, status {kind}:"
            if isinstance(answer, str):
                yield block("text", answer)
            else:
                yield (
                    block("text", in_lines(answer))
                    if kind == LINES
                    else block("json", spread(answer))
                )
    yield "## Failures"
    rows = [
        f"| {status} | `{code}` | {error['error']['message'].replace('|', chr(92) + '|')} |"
        for status, kinds in told["failures"].items()
        for code, error in kinds.items()
    ]
    yield "\n".join(["| status | code | message |", "|---|---|---|", *rows])


def block(language, text):
    """Return a code block."""
    return f"```{language}\n{text.rstrip()}\n```"


def spread(value, indent=0):
    """Return a value as JSON, over several lines where it is long."""
    line = json.dumps(value, ensure_ascii=False)
    if not value or not isinstance(value, list | dict) or len(line) + indent <= WIDTH:
        return line
    inner = "\n" + " " * (indent + 2)
    if isinstance(value, list):
        parts, ends = [spread(each, indent + 2) for each in value], "[]"
    else:
        parts = [f"{json.dumps(name)}: {spread(held, indent + 2)}" for name, held in value.items()]
        ends = "{}"
    return ends[0] + inner + f",{inner}".join(parts) + "\n" + " " * indent + ends[1]


def examples():
    """Return by route, requests and answers; by status, failures."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        made(home)
        keys = home / "keys.json"
        key = add_key(keys, "shop", ["search", "users"])
        with (
            service(home) as client,
            service(home, keys=Keys(keys, (), ChangeNotices(home))) as keyed,
            mock.patch("klsa_search.service.keys.new_password", return_value=PASSWORD),
        ):
            keyed.headers["Authorization"] = f"Bearer {key}"
            keyed.headers |= {"Origin": "http://testserver", PAGE_HEADER: "klsa-search"}
            operations = {
                route: {
                    **example,
                    "answers": answered(keyed if route in WITH_KEY else client, route, example),
                }
                for route, example in REQUESTS.items()
            }
        damaged = home / "damaged"
        (damaged / "reports").mkdir(parents=True)
        (damaged / "reports" / "CURRENT").write_text("000001\n", encoding="utf-8")
        for path in ("/health", "/health/ready"):
            with service(damaged) as client:
                answer = json.dumps(told(client.get(path))).replace(str(damaged), "index")
                operations[f"GET {path}"]["answers"]["503"] = json.loads(answer)
        (home / "other").mkdir()
        made(home / "other")
        return {"operations": operations, "failures": failures(home / "other")}


def made(home):
    """Make the index of the examples."""
    reports = [
        {"id": id_, "title": title, "text": text, "metadata": METADATA[id_]}
        for id_, title, text in REPORTS
    ]
    build(reports, name="reports", home=home).close()


class Visited(Recorder):
    """Analytics of two queries; the searches of the examples are not recorded."""

    def __init__(self, home):
        super().__init__(home, days=90, min_searches=1)
        now = int(1000 * time.time()) << ID_BITS
        with closing(Store(home)) as store:
            read = {"good": None, "corrected": False, "expanded": False, "microseconds": 1250}
            searches = [
                SearchRow(now + at, "reports", query, hits, status="counted", **read)
                for at, (query, hits) in enumerate(
                    [("leaking coolant", 3)] * 3 + [("damp roads", 0)] * 2 + [("wet roads", 2)] * 2
                )
            ]
            clicks = [
                ("click", 0, "leak", 1, None),
                ("click", 1, "heat", 2, None),
                ("later", 3, "tyre", None, now + 5),
                ("click", 5, "tyre", 1, None),
                ("later", 4, "grip", None, now + 6),
                ("click", 6, "grip", 1, None),
            ]
            store.add(
                searches,
                [EventRow(now + at, "reports", type_, id_, position, following)
                 for type_, at, id_, position, following in clicks],
            )  # fmt: skip

    def record(self, *_, **__):
        """Record nothing."""


@contextmanager
def service(home, **options):
    """A client of a service over a home, which may be written to."""
    home.mkdir(exist_ok=True)
    with OpenIndexes(home, interval=0) as open_indexes:
        refits = Jobs(open_indexes, ["none"], share=None)  # nothing is begun, as nothing looks
        app = app_of_indexes(
            open_indexes, jobs=refits, **({"writes": Writes(), "recorder": Visited(home)} | options)
        )
        yield AppClient(app, raise_server_exceptions=False)


def answered(client, route, example):
    """Ask what the example asks, and return what is answered, of each kind."""
    answers = {}
    for body in ("body", "lines"):
        if body in example or (body == "body" and "lines" not in example):
            answer = sent(client, route, example, body)
            assert answer.is_success, f"{route}: {answer.text}"
            kind = answer.headers.get("content-type", "")
            answers[LINES if kind == LINES else str(answer.status_code)] = told(answer)
    return answers


def sent(client, route, example, body="body"):
    """Send the request of an example."""
    content, headers = None, {}
    if body in example:
        value = example[body]
        is_file = isinstance(value, str)
        kind = "application/octet-stream" if is_file else JSON
        headers = {"Content-Type": LINES if body == "lines" else kind}
        content = in_lines(value) if body == "lines" else value if is_file else json.dumps(value)
    method, url = route.split()[0], address(route, example)
    return client.request(method, url, content=content, headers=headers)


def address(route, example):
    """Return path and query of an example."""
    path, query = route.split()[1], dict(example.get("parameters", {}))
    for name in [name for name in query if f"{{{name}}}" in path]:
        path = path.replace(f"{{{name}}}", quote(str(query.pop(name)), safe=""))
    query = {k: str(value).lower() if value is True else value for k, value in query.items()}
    return f"{path}?{urlencode(query)}" if query else path


def in_lines(values):
    """Write values as lines of JSON."""
    return "".join(json.dumps(each) + "\n" for each in values)


def told(answer):
    """What an answer says, without what differs from run to run."""
    kind = answer.headers["content-type"].partition(";")[0]
    if kind == "text/csv":
        return answer.text.removeprefix("\ufeff").replace("\r\n", "\n")
    if kind == "text/plain":
        metric = "klsa_index_documents"  # one of many
        few = [line for line in answer.text.splitlines() if metric in line]
        return "".join(f"{line}\n" for line in few) or answer.text
    if kind == LINES:
        return [alike(json.loads(line)) for line in answer.text.splitlines()]
    assert kind == JSON
    return alike(answer.json())


def alike(value, name=None):
    """Make the same of what differs from run to run; four digits are enough to show a number."""
    if name in ALIKE and value not in (None, {}):
        return ALIKE[name]
    if isinstance(value, dict):
        return {name: alike(held, name) for name, held in value.items()}
    if isinstance(value, list):
        return [alike(each) for each in value]
    return round(value, 4) if isinstance(value, float) else value


def failures(home):
    """One failure of each kind, by status and code: each is made to happen."""
    found = {}

    def note(answer, own="", usual=""):
        error = answer.json()["error"]
        error["message"] = error["message"].replace(own, usual)
        found.setdefault(str(answer.status_code), {})[error["code"]] = {"error": error}

    with service(home) as client:
        lamp = "/indexes/reports/documents/lamp"
        note(client.post("/search", content="{", headers={"Content-Type": JSON}))
        note(client.get("/search?q=wet+roads&index=raports"))
        note(client.get("/documents/lake"))
        note(client.get("/indexes/reports/terms/zeppelin/related"))
        note(client.post("/search", content="x" * 2**21, headers={"Content-Type": JSON}))
        note(client.put(lamp, content="dim", headers={"Content-Type": "text/plain"}))
        note(client.get("/search?q=wet+roads&k=5000"))
        note(client.post("/indexes", json={"name": "reports"}))
        note(client.put("/indexes/reports/documents/%20", json=LAMP | {"id": " "}))
        with mock.patch.object(Index, "search", side_effect=RuntimeError("a slip")):
            note(client.get("/search?q=wet+roads", headers={"X-Request-ID": "5f0c2f1d"}))
        with mock.patch("klsa_search.core.installation.find_spec", return_value=None):
            note(sent(client, judging := "POST /indexes/{name}/evaluate", REQUESTS[judging]))
    soon = 0.01
    slowly = mock.patch.object(Index, "search", side_effect=lambda *_, **__: time.sleep(1))
    with slowly, service(home, admission=Admission(request_timeout=soon)) as client:
        note(client.get("/search?q=wet+roads"), "0.01 s", "15 s")
    with service(home, writes=None) as client:
        note(client.put(lamp, json=LAMP))
    with service(home, admission=Admission(running=1, waiting=-1)) as client:
        note(client.get("/search?q=wet+roads"))
    with service(home, writes=Writes(waiting=-1)) as client:
        note(client.put(lamp, json=LAMP))
    with service(home, rates=Rates(1, lambda: 0.0)) as client:
        client.get("/indexes")
        note(client.get("/indexes"))
    file = home / "keys.json"
    token = add_key(file, "web", ["search"])
    with service(home, keys=Keys(file, {"search", "write"})) as client:
        note(client.get("/indexes"))
        note(client.delete(lamp, headers={"Authorization": f"Bearer {token}"}))
    with service(home / "empty") as client:
        note(client.get("/search?q=wet+roads"))
    return {status: dict(sorted(kinds.items())) for status, kinds in sorted(found.items())}


if __name__ == "__main__":
    main()
