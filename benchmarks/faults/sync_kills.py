"""Kills at random moments of a sync; after another sync the index is exactly the source."""

from __future__ import annotations

import json
import random
import statistics
import time
from pathlib import Path

from benchmarks.faults.children import Child, call
from benchmarks.faults.tally import Tally
from klsa_search import build, open_index
from klsa_search.search import sync
from klsa_search.storage.log import WriteLog

_NAME = "synced"
_DOCUMENTS = 400
_BATCH = 25
"""Documents of a batch: a sync has about ten, so that it can end between two."""

_SECONDS = 0.5
"""Seconds of a sync, to begin with: more after each kill, fewer after each sync that ended."""

Texts = dict[str, str]


def run(folder: Path, *, times: int = 50) -> list[Tally]:
    """Kill a sync at so many random moments, each time on the way to another source."""
    chance = random.Random(_NAME)
    tally = Tally("syncs: killed, then repeated", "SIGKILL at a random moment")
    texts = {str(n): f"text {n} of the first export" for n in range(_DOCUMENTS)}
    source = _write(folder / "source.jsonl", texts)
    call(_build, source, folder).given()
    begun, taken = folder / "begun", [_SECONDS]
    for number in range(times):
        before, texts = texts, _changed(texts, chance, number)
        _write(source, texts)
        begun.unlink(missing_ok=True)
        with Child(_sync, folder / _NAME, source, begun) as child:
            _until_exists(begun)
            began = time.monotonic()
            time.sleep(1.1 * chance.random() * statistics.median(taken[-9:]))
            child.kill()
            ended = child.end()
        taken.append(
            time.monotonic() - began if ended.well else 1.1 * statistics.median(taken[-9:])
        )
        if not ended.well and ended.signal is None:
            tally.fail("a sync failed", f"{number}: {ended}")
            break
        found: Texts = call(_look, folder / _NAME).given()
        mixed = {id_: (before.get(id_), texts.get(id_)) for id_ in before | texts}
        if found.keys() - mixed.keys() or any(
            found.get(id_) not in choices for id_, choices in mixed.items()
        ):
            tally.fail("neither the old nor the new document", str(number))
            break
        how = "as before" if found == before else "complete" if found == texts else "in between"
        call(_sync, folder / _NAME, source, begun).given()
        if call(_look, folder / _NAME).given() != texts:
            tally.fail("not the source after another sync", str(number))
            break
        tally.survive(f"{how}, then the source")
    return [tally]


def _until_exists(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.002)


def _changed(texts: Texts, chance: random.Random, number: int) -> Texts:
    """Return the next source: a sixth changed, a tenth vanished, as many new."""
    kept = {id_: text for id_, text in texts.items() if chance.random() > 0.1}
    for id_ in [id_ for id_ in kept if chance.random() < 1 / 6]:
        kept[id_] = f"text {id_} of export {number}"
    new = {f"{number}-{n}": f"new in export {number}" for n in range(_DOCUMENTS - len(kept))}
    return kept | new


def _write(path: Path, texts: Texts) -> Path:
    lines = (json.dumps({"id": id_, "text": text}) + "\n" for id_, text in texts.items())
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _build(source: Path, home: Path) -> None:
    build(source, name=_NAME, home=home).close()


def _sync(path: Path, source: Path, begun: Path) -> None:
    sync.MAX_BATCH = _BATCH  # type: ignore[misc]  # in this process
    with open_index(path) as index:
        begun.touch()
        index.sync(source, max_delete="100%")


def _look(path: Path) -> Texts:
    with open_index(path) as index:
        WriteLog(index.path).check()
        return {document.id: document.text for document in index.live_documents()}
