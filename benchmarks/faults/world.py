"""The small world of the trials: a source in versions, its index, and all answers of an index."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klsa_search import Index, open_index
from klsa_search.cli.index import klsa_index
from klsa_search.cli.main import run
from klsa_search.errors import IndexNotFound, KlsaError
from klsa_search.indexing.rewrite import refit
from klsa_search.search.rankers import RANKERS, needs_eigenvectors
from klsa_search.storage.maintenance import verify

SPECTRAL = ("truncation", "gvsm")
NAME = "reports"
VERSIONS = ("first", "old", "new", "next")

QUERIES = ("boat7 sail3", "bread1", "shared2 wing5 wing6", "nowhere")

Answers = dict[str, Any]
"""By query: documents with their scores to the last bit, and the sum of all documents."""


def documents(version: str, count: int = 30) -> list[dict[str, str]]:
    """Documents of three subjects that differ from version to version; the last is empty."""
    chance = random.Random(f"{version} {count}")
    found = []
    for number in range(count - 1):
        subject = ("boat", "bread", "wing")[number % 3]
        words = [f"{subject}{chance.randrange(12)}" for _ in range(chance.randint(5, 14))]
        words += [f"shared{chance.randrange(6)}", f"sail{chance.randrange(4)}"]
        text = " ".join(words)
        found.append({"id": f"{version}{number}", "title": words[0], "text": text})
    return [*found, {"id": f"{version}{count - 1}", "title": "", "text": ""}]


@dataclass(frozen=True)
class Said:
    """What a command left behind: its exit code, and one sentence or more."""

    code: int
    out: str
    err: str

    def expect_done(self) -> None:
        """AssertionError if it failed."""
        assert self.code == 0, self.words

    @property
    def words(self) -> str:
        """What it said of a failure, on one line."""
        return " ".join(self.err.split())

    @property
    def in_a_sentence(self) -> bool:
        """Whether it is done, or failed with one line that is no slip of the program."""
        if self.code == 0:
            return True
        lines = [line for line in self.err.splitlines() if line.startswith(("error: ", "Error: "))]
        return len(lines) == 1 and "slip of the program" not in self.err


def command(*words: object) -> Said:
    """Run klsa-index in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run(klsa_index, [str(word) for word in words])
        except SystemExit as left:
            return Said(int(left.code or 0), out.getvalue(), err.getvalue())
        except Exception as slip:  # noqa: BLE001 - what reaches the user as a slip of the program
            return Said(1, out.getvalue(), f"error: a slip of the program itself: {slip!r}")
    raise AssertionError("a command ends with an exit code")


@dataclass(frozen=True)
class Place:
    """A folder with a source, the home of indexes, and one index in it.

    The source is one file in every version, so that its index is built again and not replaced.
    """

    folder: Path
    spectral: str = "gvsm"
    count: int = 30

    @property
    def home(self) -> Path:
        """Folder of indexes."""
        return self.folder / "home"

    @property
    def index(self) -> Path:
        """Folder of the index."""
        return self.home / NAME

    def write(self, version: str) -> Path:
        """Write the source; `broken` has a bad last line."""
        self.home.mkdir(parents=True, exist_ok=True)
        # Each of its own: two builders at once do not read what the other is asked to.
        source = self.folder / version / "reports.jsonl"
        source.parent.mkdir(exist_ok=True)
        rows = documents("new" if version == "broken" else version, self.count)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        text += '{"id":\n' if version == "broken" else ""
        if not source.exists() or source.read_text() != text:
            source.write_text(text)
        return source

    def build(self, version: str) -> Said:
        """Build the index of a version."""
        options = ["--spectral", self.spectral, "--dimensions", 4, "--latent-dimensions", 4]
        place = ["--name", NAME, "--home", self.home, "--replace"]
        return command("build", self.write(version), *place, *options)

    def rebuild(self) -> Said:
        """Build the index again, from the documents that it holds."""
        try:
            with closing(open_index(self.index)) as index:
                refit(index).close()
        except KlsaError as error:
            return Said(1, "", f"error: {error.message}\n")
        return Said(0, "", "")

    def do(self, what: str) -> Said:
        """Build a version; or `rebuild`, `rollback`, `delete` or `verify` the index."""
        if what in (*VERSIONS, "broken"):
            return self.build(what)
        if what == "rebuild":
            return self.rebuild()
        name, sure = ("delete-index", ["--yes"]) if what == "delete" else (what, [])
        return command(name, NAME, "--home", self.home, *sure)


def state(path: Path, known: Known) -> str:
    """Name the version whose answers an index gives, exactly; or `none`, or what is wrong."""
    try:
        found = answers(path)
    except IndexNotFound:
        return "none"
    except KlsaError as error:
        return f"refused: {error.message}"
    for version, expected in known.answers.items():
        if found == expected:
            return version
    return "wrong answers"


@dataclass(frozen=True)
class Known:
    """What comes of builds that nothing disturbs.

    answers  of each version's index
    left     names of what lies in the home after many builds, and how often
    """

    answers: dict[str, Answers]
    left: Counter[str]

    def more(self, left: Counter[str]) -> list[str]:
        """Names of what should not be there."""
        return sorted(left - self.left)


def known_of(folder: Path, spectral: str, count: int = 30) -> Known:
    """Build each version of an index, where nothing disturbs it."""
    place = Place(folder, spectral, count)
    found = {}
    for version in VERSIONS:
        place.do(version).expect_done()
        found[version] = answers(place.index)
    return Known(found, names_in(place.home))


def names_in(home: Path) -> Counter[str]:
    """Count the names of what lies in a home, all generations having the same."""
    names = (path.relative_to(home).as_posix() for path in home.rglob("*"))
    return Counter(re.sub(r"\d{6}", "generation", name) for name in names)


def whole(path: Path) -> bool:
    """Whether every file of the generation in use has its sum."""
    try:
        verify(path)
    except KlsaError:
        return False
    return True


def answers(path: Path, *, thoroughly: bool = False) -> Answers:
    """Everything an index says: what it ranks and every document it holds."""
    with closing(open_index(path)) as index:
        return answers_of(index, thoroughly=thoroughly)


def answers_of(index: Index, *, thoroughly: bool = False) -> Answers:
    """The same of an open index; `thoroughly` with every ranker, so that every array is read."""
    asked: list[dict[str, Any]] = [{}, {"ranker": "bm25"}]
    if thoroughly:
        asked.append({"exact": True})
    if thoroughly and needs_eigenvectors(index.settings):
        asked += [{"ranker": name} for name in RANKERS if name not in ("klsa", "bm25")]
        asked += [{"spectral": "exponential"}, {"alpha": 1.0, "dimensions": 2}]
    found: Answers = {}
    for parameters in asked:
        for query in QUERIES:
            results = index.search(query, 10, **parameters)
            hits = [(hit.id, hit.score.hex(), hit.title, hit.snippet) for hit in results]
            found[f"{query} {parameters}"] = (results.total, hits)
    ids = index.ids()
    held = [index.document(id) for id in ids]  # noqa: A001 - the field's own name
    found["documents"] = hashlib.sha256(repr([(ids, held)]).encode()).hexdigest()
    return found
