"""Test that the service answers as its OpenAPI schema says, with schemathesis.

    python -m benchmarks.openapi [--cases 10000] [--seed 0]

So many generated requests, as many for each operation, go to a service of one small index in this
process: half of them fit the schema, half do not. Half of those that fit name what exists. All
checks of schemathesis are on: no 5xx, no status, content type or body that is not documented, no
valid request refused, no invalid one accepted. One is wider than usual: 422 may answer a request
that fits the schema, as no schema says that a filter has to parse, or that `page` excludes `k`.
Each violation is reported with one request, and the command exits with status 1.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from studies import command_parser

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "1", "title": "Wings", "text": "A wing lifts the aircraft.", "year": 1950},
    {"id": "a/b c?%", "title": "Heat", "text": "Heat in the boundary layer of a wing."},
    {"id": "3", "title": "Odd", "text": "A layer of <b>ice</b> & snow.", "year": 1960},
]
NAME = "tiny"
KNOWN = {"name": NAME, "id": "1", "term": "wing"}
PATIENCE = 600
"""Seconds for an answer."""
ACCEPTED = ["2xx", 401, 403, 404, 409, 422, 429, 503]


@contextmanager
def _service() -> Iterator[Any]:
    """The application over a home of one index, which it may write to."""
    from klsa_search.indexing.build import build
    from klsa_search.service import ServiceSettings, create_app

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        build(DOCUMENTS, name=NAME, home=home, dimensions=2).close()
        settings = ServiceSettings(
            home=home, allowed_hosts=("*",), writable=True, refit_threshold=0
        )
        yield create_app(settings, loopback=True)


def judged(cases: int, number: int = 0) -> tuple[Counter[int], list[str]]:
    """Ask so many requests; statuses of the answers, and what does not hold, each kind once."""
    import schemathesis

    @schemathesis.serializer("application/x-ndjson")
    def _lines(_: Any, document: Any) -> bytes:
        return json.dumps(document).encode() + b"\n"

    checks = {"positive_data_acceptance": {"expected-statuses": ACCEPTED}}
    config = schemathesis.Config.from_dict({"checks": checks, "request-timeout": PATIENCE})
    statuses: Counter[int] = Counter()
    wrong: dict[tuple[str, str], str] = {}
    with _service() as app:
        schema: Any = schemathesis.openapi.from_asgi("/openapi.json", app, config=config)
        operations = [each.ok() for each in schema.get_all_operations()]
        each = max(1, cases // (2 * len(operations)))
        for operation in operations:
            for fits in (True, False) if _may_be_wrong(operation) else (True,):
                _judge(operation, fits, each, number, statuses, wrong)
    return statuses, list(wrong.values())


def _may_be_wrong(operation: Any) -> bool:
    """Whether something given can break the schema: any text does for a part of the path."""
    given = {str(each.location.value) for each in operation.iter_parameters()}
    return bool(operation.body) or bool(given - {"path"})


def _judge(
    operation: Any,
    fits: bool,
    cases: int,
    number: int,
    statuses: Counter[int],
    wrong: dict[tuple[str, str], str],
) -> None:
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st
    from schemathesis import GenerationMode
    from schemathesis.core.failures import FailureGroup

    mode = GenerationMode.POSITIVE if fits else GenerationMode.NEGATIVE

    @seed(number)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), known=st.booleans())
    def ask(case: Any, known: bool) -> None:
        if fits and known and operation.label != "DELETE /indexes/{name}":  # others need it
            given_names = case.path_parameters or {}
            given_names.update({name: KNOWN[name] for name in given_names.keys() & KNOWN.keys()})
        answer = case.call()
        statuses[answer.status_code] += 1
        try:
            case.validate_response(answer)
        except FailureGroup as failures:
            for failure in failures.exceptions:
                kind = operation.label, type(failure).__name__
                wrong.setdefault(kind, f"{operation.label}: {failure}\n{case.as_curl_command()}")

    ask()


def main() -> None:
    parser = command_parser("benchmarks.openapi", __doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    statuses, wrong = judged(options.cases, options.seed)
    print(f"{statuses.total():,} requests: {dict(sorted(statuses.items()))}")
    for each in wrong:
        print(each)
    print(f"{len(wrong)} kinds of answers do not fit the schema")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
