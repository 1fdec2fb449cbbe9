"""Changes of each kind that a service acknowledges, and what any of its processes answers then."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from klsa_search.service.keys import add_key, revoke_key

DOCUMENTS = [
    {"id": "1", "title": "Files", "text": "Read files in a coroutine, line by line."},
    {"id": "2", "title": "Sockets", "text": "Read from a socket."},
    {"id": "3", "title": "Pipes", "text": "Write to a pipe."},
]

Ask = Callable[..., tuple[int, Any]]
"""Sends a request, and returns status and JSON: method, path, body, key=..."""

Outcome = tuple[object, object]  # what was answered, and what was right


def hits(answer: tuple[int, Any]) -> list[str]:
    status, content = answer
    return [hit["id"] for hit in content["hits"]] if status == 200 else [f"status {status}"]


def writes(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    word = f"zeppelin{number}"
    ask("PUT", "/indexes/files/documents/new", {"text": f"A {word}."})
    yield hits(ask("GET", f"/search?index=files&q={word}&spelling=off")), ["new"]
    yield ask("GET", "/indexes/files/documents/new")[1].get("text"), f"A {word}."
    yield ask("GET", "/indexes/files")[1]["documents"], 4


def deletes(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    ask("PUT", "/indexes/files/documents/gone", {"text": f"An airship{number}."})
    ask("DELETE", "/indexes/files/documents/gone")
    yield hits(ask("GET", f"/search?index=files&q=airship{number}&spelling=off")), []
    yield ask("GET", "/indexes/files/documents/gone")[0], 404


def creations(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    name = f"made{number}"
    ask("POST", "/indexes", {"name": name})
    yield ask("GET", f"/search?index={name}&q=read")[0], 200
    yield name in [each["name"] for each in ask("GET", "/indexes")[1]["indexes"]], True
    yield ask("PUT", f"/indexes/{name}/documents/1", {"text": "Read."})[0], 200
    yield hits(ask("GET", f"/search?index={name}&q=read")), ["1"]
    ask("DELETE", f"/indexes/{name}")
    yield ask("GET", f"/search?index={name}&q=read")[0], 404
    yield ask("GET", f"/indexes/{name}")[0], 404


def replacements(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    """An index of the same name as one that was deleted."""
    ask("POST", "/indexes", {"name": "same"})
    yield hits(ask("GET", "/search?index=same&q=read")), []
    ask("PUT", f"/indexes/same/documents/{number}", {"text": "Read."})
    yield hits(ask("GET", "/search?index=same&q=read")), [str(number)]
    ask("DELETE", "/indexes/same")


def aliases(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    target = ("files", "other")[number % 2]
    ask("PUT", "/aliases/name", {"index": target})
    yield ask("GET", "/search?index=name&q=read")[1].get("index"), target
    if number % 3 == 0:
        ask("DELETE", "/aliases/name")
        yield ask("GET", "/search?index=name&q=read")[0], 404


def settings(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    alpha = (1 + number % 8) / 10
    ask("PATCH", "/indexes/files", {"settings": {"alpha": alpha}})
    yield ask("GET", "/search?index=files&q=read")[1]["parameters"]["alpha"], alpha
    yield ask("GET", "/indexes/files")[1]["settings"]["alpha"], alpha


def synonyms(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    ask("PUT", "/indexes/other/synonyms", {"synonyms": {f"kite{number}": ["pipe"]}})
    yield hits(ask("GET", f"/search?index=other&q=kite{number}&spelling=off"))[:1], ["3"]


def rules(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    pinned = str(1 + number % 3)
    rule = {"id": "first", "then": {"pin": [{"id": pinned, "position": 1}]}}
    ask("PUT", "/indexes/other/rules/first", rule)
    yield hits(ask("GET", "/search?index=other&q=read"))[:1], [pinned]


def refits(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    head = 2 + number % 2
    _, answer = ask("PATCH", "/indexes/rebuilt", {"settings": {"head": head}})
    job = answer["job"]["id"]
    while (state := ask("GET", f"/jobs/{job}")[1]["state"]) in ("waiting", "running"):
        time.sleep(0.05)
    yield state, "done"
    yield ask("GET", "/search?index=rebuilt&q=read")[1]["generation"], f"{number + 2:06d}"
    yield ask("GET", "/indexes/rebuilt")[1]["settings"]["head"], head


def keys(ask: Ask, home: Path, number: int) -> Iterator[Outcome]:
    name = f"key-{number}"
    key = add_key(home / ".keys.json", name, ["search"])
    yield ask("GET", "/search?index=files&q=read", key=key)[0], 200
    revoke_key(home / ".keys.json", name)
    yield ask("GET", "/search?index=files&q=read", key=key)[0], 401


KINDS = (writes, deletes, creations, replacements, aliases, settings, synonyms, rules, keys, refits)


def stale_answers(kind: Any, ask: Ask, home: Path, rounds: int) -> tuple[list[Outcome], int]:
    """Return the answers that were not those that were right, and how many answers there were.

    What a busy service refuses is sent again: a refused change was not acknowledged, and a refused
    question not answered.
    """

    def acknowledged(method: str, path: str, *body: Any, **key: Any) -> tuple[int, Any]:
        answer = ask(method, path, *body, **key)
        while answer[0] in (429, 503):
            answer = ask(method, path, *body, **key)
        return answer

    outcomes = [outcome for n in range(rounds) for outcome in kind(acknowledged, home, n)]
    return [(answer, right) for answer, right in outcomes if answer != right], len(outcomes)
