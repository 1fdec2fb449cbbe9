"""What putting the words of queries right changes, on the collections of `kinds`.

As they stand (`spelling = off`) against as a search reads them by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search.evaluation import TIE
from studies.effectiveness.kinds import KINDS, task_of
from studies.effectiveness.measuring import Bench, chance, compared, heading, percent, row


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision. `names`: only these."""
    found: dict[str, Any] = {}
    heading("", "queries", "as they stand", "put right", "change", "better", "worse", "p")
    for name in names or KINDS:
        task = task_of(name, data)
        base = bench.precisions(task, {"spelling": "off"})
        right = bench.precisions(task, {"spelling": "auto"})
        measures = compared(right, base)
        found[name] = {"off": base, "auto": right, "measures": measures}
        change = np.array(right) - np.array(base)
        row(
            name,
            len(base),
            f"{np.mean(base):.4f}",
            f"{np.mean(right):.4f}",
            percent(measures["gain"]),
            int((change > TIE).sum()),
            int((change < -TIE).sum()),
            f"{chance(right, base):.2f}",
        )
    return found
