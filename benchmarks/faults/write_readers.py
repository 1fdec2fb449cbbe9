"""Readers during writes: several processes search while one writes and another refits.

Documents come and go in pairs. What is known of each pair is a byte of a file that all share: it is
set before a write begins, and again once that is acknowledged. So what a reader finds is compared
with what was so before it asked and what was so behind.
"""

from __future__ import annotations

import mmap
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count, takewhile
from pathlib import Path

from benchmarks.faults import written
from benchmarks.faults.children import Child, call
from benchmarks.faults.tally import Tally
from klsa_search import Index, open_index
from klsa_search.errors import StoreError
from klsa_search.indexing import refit
from klsa_search.storage.maintenance import verify
from klsa_search.storage.write_log import WriteLog

_PAIRS = 100_000
_UNKNOWN, _THERE, _GOING, _GONE = range(4)
_STANDING = 20
"""Pairs that are there at a time, about."""
_PAUSE = 0.1
"""Seconds before a pair goes again, and a tenth of those between refits, at most."""
_SIDES = "ab"
_WORD = "pair"


def run(folder: Path, *, seconds: float = 60, readers: int = 4) -> list[Tally]:
    """Search for so many seconds, in so many processes, beside a writer and a refitter."""
    call(written.build_version, folder, "old").given()
    path, known, stop = folder / written.NAME, folder / "known", folder / "stop"
    known.write_bytes(bytes(_PAIRS))
    reading = Tally("writes: readers", "an answer, while another process writes and one refits")
    writing = Tally("writes: beside readers", "a write or refit, acknowledged")
    with ExitStack() as stack:
        asking = [stack.enter_context(Child(_read, path, known, stop)) for _ in range(readers)]
        others = [stack.enter_context(Child(work, path, known, stop)) for work in (_write, _refit)]
        time.sleep(seconds)
        stop.touch()
        for children, tally in ((asking, reading), (others, writing)):
            for ended in [child.end() for child in children]:
                if not ended.well:
                    tally.fail("ended", str(ended))
                    continue
                for how, times in ended.answer[0].items():
                    tally.survive(how, times)
                for how, example in ended.answer[1]:
                    tally.fail(how, example)
    last = call(verify, path)
    if not last.well:
        writing.fail("not whole in the end", str(last))
    return [reading, writing]


def _turns(stop: Path) -> Iterator[int]:
    """From 1 on until there is that file: once in any case, however late this process begins."""
    yield 1
    for turn in count(2):
        if stop.exists():
            return
        yield turn


Found = tuple[Counter[str], list[tuple[str, str]]]
"""How trials ended that are right, and those that are not, with examples."""


def _write(path: Path, known: Path, stop: Path) -> Found:
    """Put pairs in, and take them out by deletion or by undoing."""
    chance, counted, standing = random.Random(0), Counter[str](), [0]
    with _shared(known) as pairs, closing(open_index(path)) as index:
        index.add(_pair(0))
        pairs[0] = _THERE
        for number in takewhile(lambda number: number < _PAIRS, _turns(stop)):
            index.add(_pair(number))
            counted["added"] += 1
            time.sleep(_PAUSE * chance.random())
            if chance.random() < 0.3 and _undone(index, pairs, number):
                counted["undone"] += 1
                continue
            pairs[number] = _THERE
            standing.append(number)
            while len(standing) > chance.randrange(1, 2 * _STANDING):
                gone = standing.pop(chance.randrange(len(standing)))
                pairs[gone] = _GOING
                index.delete([f"{side}{gone}" for side in _SIDES])
                pairs[gone] = _GONE
                counted["deleted"] += 1
    return counted, []


def _undone(index: Index, pairs: mmap.mmap, number: int) -> bool:
    """Undo the last batch, where it is this pair alone: a refit joins batches."""
    ids = [record["id"] for record in _pair(number)]
    with written.alone_writing(index) as writer:
        log = WriteLog(index.path)
        last = [batch for batch in log.batches() if batch.undone is None][-1:]
        if [batch.puts for batch in last] != [len(ids)] or last[0].deletes:
            return False
        if [write.id for write in log.rows(last[0].last - len(ids))] != ids:
            return False
        pairs[number] = _GOING
        writer.undo()
    index.refresh()
    pairs[number] = _GONE
    return True


def _refit(path: Path, known: Path, stop: Path) -> Found:
    chance, counted = random.Random(1), Counter[str]()
    for _ in _turns(stop):
        time.sleep(10 * _PAUSE * chance.random())
        try:
            refit(path).close()
            counted["refitted"] += 1
        except StoreError as error:
            if "undone" not in error.message:
                raise
            counted["refused to refit what was undone meanwhile"] += 1
    return counted, []


def _read(path: Path, known: Path, stop: Path) -> Found:
    counted: Counter[str] = Counter()
    wrong: list[tuple[str, str]] = []
    with _shared(known) as pairs, closing(open_index(path)) as index:
        for _ in _turns(stop):
            before = bytes(pairs)
            index.refresh()
            for ranker in ("bm25", "klsa"):
                results = index.search(_WORD, 4 * _PAIRS, ranker=ranker)
                found = {hit.id for hit in results if hit.id[0] in _SIDES}
                fault = _fault(found, before, bytes(pairs))
                if ranker == "bm25" and results.total != len(results.hits):
                    fault = "two snapshots in one answer", f"{results.total} of {len(found)}"
                if fault:
                    wrong.append(fault)
                else:
                    counted["right"] += 1
            pinned = index.snapshot()
            ids = pinned.ids()
            if len(ids) != len(pinned) or any(pinned.document(id_).id != id_ for id_ in ids):
                wrong.append(("two snapshots in one answer", f"{len(ids)} of {len(pinned)}"))
    return counted, wrong


def _fault(found: set[str], before: bytes, behind: bytes) -> tuple[str, str] | None:
    """What is wrong with what was found, if it was asked for between two times."""
    sides = [{int(id_[1:]) for id_ in found if id_[0] == side} for side in _SIDES]
    if sides[0] != sides[1]:
        return "half a pair", f"{sorted(sides[0] ^ sides[1])[:5]}"
    risen = [number for number in sides[0] if before[number] == _GONE]
    if risen:
        return "found after it was gone", f"{sorted(risen)[:5]}"
    last = max((before.rfind(bytes([_THERE])), 0))
    lost = [
        number
        for number in range(last + 1)
        if before[number] == behind[number] == _THERE and number not in sides[0]
    ]
    return ("not found though it is there", f"{lost[:5]}") if lost else None


def _pair(number: int) -> list[dict[str, str]]:
    return [{"id": f"{side}{number}", "text": f"{_WORD} w{number % 30}"} for side in _SIDES]


@contextmanager
def _shared(file: Path) -> Iterator[mmap.mmap]:
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), _PAIRS) as shared:
        yield shared
