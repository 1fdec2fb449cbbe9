"""Documents and queries of the tests of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

WORDS = [f"word{number:02d}" for number in range(60)]
QUERIES = ["word01 word05", "word13 word20 word21", "word30 word40 word50", "d7"]


def documents(count: int = 150, seed: int = 0, first: int = 0) -> list[dict[str, Any]]:
    """Return random documents of five topics."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(first, first + count):
        topic = int(rng.integers(5))
        own = rng.choice(WORDS[topic * 12 : topic * 12 + 12], int(rng.integers(4, 12)))
        text = " ".join([*own, *rng.choice(WORDS, 3)])
        made.append({"id": f"d{number}", "title": f"Topic {topic}", "text": text, "year": number})
    return made
