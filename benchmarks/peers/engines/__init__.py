"""One module a peer, each with a class `Engine` as `worker` wants it.

    Engine(folder, stop_words, *options)  folder: of the index; stop_words: a sorted list
    build(corpus)                         read JSON lines, index field `text`; timed as a whole
    open()                                load, and warm what compiles late
    rank(query, k)                        one query; what it returns holds numbers and scores
    rank_all(queries, k)                  many at once, if the peer can: otherwise not there
    numbers(answer)                       document numbers (from 0) of what `rank` returned

Every engine analyses the text itself, in `build` and within the time of `rank`: words are runs of
letters and digits, stop words ours, stemming Porter's as far as the peer can.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path


def texts(corpus: Path) -> Iterator[str]:
    """Texts of a file of JSON lines, in order."""
    with corpus.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]
