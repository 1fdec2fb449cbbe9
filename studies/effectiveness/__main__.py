"""How well the default ranks, and what that rests on.

    python -m studies.effectiveness kinds           [--json FILE] [TASK...]
    python -m studies.effectiveness steps           [--json FILE]
    python -m studies.effectiveness unseen          [--json FILE] [TASK...]
    python -m studies.effectiveness folded-in       [--json FILE]
    python -m studies.effectiveness quality         [--json FILE]
    python -m studies.effectiveness spelling        [--json FILE] [TASK...]
    python -m studies.effectiveness languages       [--json FILE] [PAIR...]
    python -m studies.effectiveness partitions      [--json FILE] [TASK...]
    python -m studies.effectiveness passages        [--json FILE] [TASK...]
    python -m studies.effectiveness vectors         [--json FILE] [TASK...]
    python -m studies.effectiveness similar         [--json FILE] [TASK...]

Each prints a Markdown table and, with --json, writes every average precision it rests on. The
collections are looked for in ../shared/collections or $KLSA_COLLECTIONS, the seven of `kinds` that
`klsa-eval fetch` does not fetch in its folder `more`, Reuters-21578 below
../shared/datasets or $KLSA_DATASETS.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from studies import command_parser
from studies.datasets import collections_home
from studies.effectiveness import (
    folded_in,
    kinds,
    languages,
    partitions,
    passages,
    quality,
    similar,
    spelling,
    unseen,
    vectors,
)
from studies.effectiveness.measuring import Bench

_OF_ALL = {"steps": kinds.report_steps, "folded-in": folded_in.report, "quality": quality.report}
_OF_TASKS = {
    "kinds": kinds.report,
    "unseen": unseen.report,
    "spelling": spelling.report,
    "languages": languages.report,
    "passages": passages.report,
    "partitions": partitions.report,
    "vectors": vectors.report,
    "similar": similar.report,
}
CLAIMS: dict[str, Callable[..., dict[str, Any]]] = {**_OF_ALL, **_OF_TASKS}


def main() -> None:
    parser = command_parser("studies.effectiveness", __doc__)
    parser.add_argument("claim", choices=tuple(CLAIMS))
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help=f"of {', '.join(_OF_TASKS)}: only these"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_intermixed_args()
    make = CLAIMS[options.claim]
    if options.tasks:
        if options.claim not in _OF_TASKS:
            parser.error(f"only {', '.join(_OF_TASKS)} have tasks to name")
        make = partial(make, names=options.tasks)
    with tempfile.TemporaryDirectory(prefix="klsa-effectiveness-") as home:
        report = make(Bench(Path(home)), collections_home())
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
