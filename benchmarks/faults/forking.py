"""Forks a process whose threads search, again and again; prints how its children ended, as JSON.

    python -m benchmarks.faults.forking INDEX CHILDREN

Run in a process of its own by `forks`: each child leaves as a program does, and not by `os._exit`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from benchmarks.faults.answers import QUERIES, Answers, answers, answers_of
from benchmarks.faults.children import PATIENCE
from klsa_search import Index, open_index
from klsa_search.errors import KlsaError

_THREADS = 4
_ENOUGH = 3
_ENDS = {0: "answered as before", 2: "refused in a sentence", 3: "wrong answers"}


def _search(index: Index, stop: threading.Event) -> None:
    while not stop.is_set():
        for query in QUERIES:
            index.search(query)
            index.document("old1")


def _child(index: Index, path: Path, expected: Answers) -> int:
    """Ask the index that was open, with threads as well, and then the same opened anew."""
    try:
        found = [answers_of(index), answers(path)]
        index.search_many(QUERIES, threads=2)
        index.close()
    except KlsaError:
        return 2
    return 0 if found == [expected, expected] else 3


def _ended(child: int) -> str:
    end = time.monotonic() + PATIENCE
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return _ENDS.get(code, f"ended by signal {-code}" if code < 0 else "another exception")
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return "hung"
        time.sleep(0.01)


def main() -> None:
    path, count = Path(sys.argv[1]), int(sys.argv[2])
    stop = threading.Event()
    found: Counter[str] = Counter()
    with closing(open_index(path)) as index:
        expected = answers_of(index)
        threads = [threading.Thread(target=_search, args=(index, stop)) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(count):
                time.sleep(0.01)
                child = os.fork()
                if not child:
                    sys.exit(_child(index, path, expected))
                found[_ended(child)] += 1
                if found["hung"] == _ENOUGH:
                    break
        finally:
            stop.set()
        for thread in threads:
            thread.join(PATIENCE)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
