"""Records of runs, and their replay, with the first difference if there is one.

    record = record_run(index, queries, run, k, alpha=0.5)    writes the run
    write_record(record, path), read_record(path)             JSON
    replay(record, queries, index)                            repeats it

A record has everything that the content of a run depends on, and no date and no path, so the same
run of the same index has the same record.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple, Unpack, cast

from pydantic import ValidationError

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.tokenizers import function_of
from klsa_search.collection.model import Collection
from klsa_search.collection.queries import read_query_lines
from klsa_search.core.config import QUERY_SETTINGS, Settings
from klsa_search.core.parameters import ParsingSettings, SearchParameters
from klsa_search.core.progress import Progress
from klsa_search.errors import ReplayFailed, SettingsError
from klsa_search.evaluation.measures import rank_best, recorded
from klsa_search.indexing.build import build
from klsa_search.search.index import Index
from klsa_search.storage.manifest import Frozen, sha256_of

_PACKAGES: Final = ["klsa-search", "numpy", "PyStemmer", "rapidfuzz", "scipy", "stopwordsiso"]
"""Packages that affect scores, or the terms of a query."""


class QueriesEntry(Frozen):
    """File of queries."""

    name: str
    sha256: str


class RunEntry(Frozen):
    """Run file, with the number of its queries and hits."""

    name: str
    sha256: str
    queries: int
    hits: int


class IndexEntry(Frozen):
    """The searched index, as it was built.

    package_version  of the build
    files            SHA-256 of each file, from the manifest
    """

    name: str
    generation: str
    source: str
    documents: int
    format_version: int
    package_version: str
    fingerprint: str
    settings: dict[str, Any]
    files: dict[str, str]


class Conditions(Frozen):
    """Everything that a run depends on.

    record      version of this format
    parameters  all parameters of the searches, defaults of the index included; `dimensions` is None
                for all eigenvectors
    synonyms    of the index; None if the searches did not use them
    tokenizer   SHA-256 of the module of a tokenizer of the user
    versions    of Python and the packages that affect scores
    """

    record: Literal[1] = 1
    queries: QueriesEntry
    k: int
    parameters: dict[str, Any]
    index: IndexEntry
    synonyms: dict[str, tuple[str, ...]] | None
    tokenizer: str | None
    versions: dict[str, str]


class RunRecord(Conditions):
    """Record of a run: everything it depends on, and its checksum."""

    run: RunEntry


def record_run(
    index: Index,
    queries: Path,
    run: Path,
    k: int = 10,
    *,
    threads: int = 1,
    **parameters: Unpack[SearchParameters],
) -> RunRecord:
    """Run the queries of a file, write the run, and return its record.

    queries  file with lines of an ID, a tab and a text
    run      file to write, in TREC format; the tag is the name of the ranker

    Other parameters are those of `Index.rank_many`. Cost: that of the run, and of reading both
    files again. Raise ReplayFailed if the index was written to since its build; CollectionError;
    QueryError.
    """
    run_conditions = conditions(index, queries, k, parameters)
    entry = write_run(run_conditions, index, queries, run, threads=threads)
    return RunRecord(**dict(run_conditions), run=entry)


def conditions(index: Index, queries: Path, k: int, parameters: SearchParameters) -> Conditions:
    """Return what a run will depend on. See `record_run`."""
    if index.last_write.seq:
        raise ReplayFailed(
            f"index `{index.name}` has writes after its build, which a record "
            f"cannot describe; rebuild it with `klsa-index refit {index.name}`, or "
            "undo them with `klsa-index rollback --writes`"
        )
    chosen = index.parameters(**parameters).model_dump()
    parsing = ParsingSettings.of(index.settings).model_dump()
    parsing |= {n: value for n, value in parameters.items() if n in parsing and value is not None}
    manifest = index.manifest
    return Conditions(
        queries=QueriesEntry(name=queries.name, sha256=sha256_of(queries)),
        k=k,
        parameters=parsing | chosen | {"dimensions": parameters.get("dimensions")},
        index=IndexEntry(
            name=index.name,
            generation=index.generation,
            source=manifest.source,
            documents=manifest.counts.documents,
            format_version=manifest.format_version,
            package_version=manifest.package_version,
            fingerprint=manifest.fingerprint,
            settings=index.settings.model_dump(mode="json"),
            files={name: entry.sha256 for name, entry in sorted(manifest.files.items())},
        ),
        synonyms={word: tuple(replacements) for word, replacements in index.synonyms.items()}
        if parsing["synonyms"]
        else None,
        tokenizer=_module_checksum(index.settings.tokenizer),
        versions={"python": platform.python_version()}
        | {package: version(package) for package in _PACKAGES},
    )


def write_run(
    run_conditions: Conditions, index: Index, queries: Path, run: Path, *, threads: int = 1
) -> RunEntry:
    """Write the run for these conditions, and return its entry."""
    queries_of_file = read_query_lines(queries)
    rankings = rank_best(
        index, queries_of_file, run_conditions.k, threads=threads, **run_conditions.parameters
    )
    hits = sum(
        len(ranking.document_ids)
        for ranking in recorded(rankings, run, run_conditions.parameters["ranker"])
    )
    return RunEntry(name=run.name, sha256=sha256_of(run), queries=len(queries_of_file), hits=hits)


def write_record(record: RunRecord, path: Path) -> None:
    """Write a record as JSON."""
    path.write_text(json.dumps(record.model_dump(), indent=2) + "\n", encoding="utf-8")


def read_record(path: Path) -> RunRecord:
    """Return the record of a run from a file; ReplayFailed for other files; OSError."""
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise ReplayFailed(
            f"`{path}` is not a record of a run that this version of klsa-search reads ({where}: "
            f"{first['msg']}); give the file as `klsa-search --record` wrote it, and replay it "
            "with the version that wrote it"
        ) from None


def _module_checksum(tokenizer: str | None) -> str | None:
    """Return SHA-256 of the module of a tokenizer, because an index has only its name."""
    if tokenizer is None:
        return None
    module = function_of(tokenizer).__module__
    file = getattr(sys.modules[module], "__file__", None)
    return sha256_of(Path(file)) if file else None


_DOCUMENTS: Final = ("documents.npy", "documents_starts.npy")
"""Files of an index that depend on its documents alone."""


class ReplayResult(NamedTuple):
    """Result of a replay that is identical to the recorded run.

    files     files of the index with other bytes than recorded
    versions  package versions that differ, each with the recorded one
    """

    run: RunEntry
    files: tuple[str, ...]
    versions: tuple[str, ...]


def replay(
    record: RunRecord,
    queries: Path,
    index: Index,
    *,
    run: Path | None = None,
    out: Path | None = None,
) -> ReplayResult:
    """Repeat a recorded run, and compare it byte for byte.

    queries  file of the recorded queries
    index    the recorded index, or one with its documents and settings: see `build_as_recorded`
    run      file of the recorded run, to report the first line that differs
    out      file to write the new run to; it is kept if the run differs

    Raise ReplayFailed for the first difference: the queries; the settings, documents, synonyms or
    tokenizer of the index; or the run, with the package versions that differ. It is also raised for
    an index that was written to since its build. Cost: that of the run.
    """
    refuse_other_files(record, queries, run)
    parameters = cast(SearchParameters, record.parameters)
    now = conditions(index, queries, record.k, parameters)
    _refuse_differences(record, now)
    names = sorted({*record.index.files, *now.index.files})
    files = tuple(n for n in names if record.index.files.get(n) != now.index.files.get(n))
    versions = tuple(
        f"{name} {now.versions.get(name)}, then {then}"
        for name, then in record.versions.items()
        if now.versions.get(name) != then
    )
    with TemporaryDirectory(prefix="klsa-replay-") as folder:
        path = out or Path(folder) / record.run.name
        entry = write_run(record, index, queries, path)
        if entry.sha256 != record.run.sha256:
            differences = [*versions, *files[:1]]
            cause = (
                f"differs from the record: {'; '.join(differences)}"
                if differences
                else "all else is as recorded"
            )
            raise ReplayFailed(f"the run differs: {_first_line(run, path)} ({cause})")
    return ReplayResult(entry, files, versions)


def build_as_recorded(
    record: RunRecord, source: Collection, home: Path, *, progress: Progress | None = None
) -> Index:
    """Build the index of a record in an index directory, with the recorded settings and synonyms.

    `replay` checks whether the documents are the recorded ones. Raise ReplayFailed for settings
    that this version does not have; SettingsError for a tokenizer that this process does not trust;
    other errors and cost are those of `klsa_search.build`.
    """
    then = record.index
    try:
        settings = Settings.checked(then.settings)
    except SettingsError as error:
        raise ReplayFailed(
            f"index `{then.name}` cannot be rebuilt as recorded: {error.message}; "
            f"use klsa-search {then.package_version}"
        ) from None
    Analyzer(settings)  # checks the tokenizer, which `build` would import and trust
    index = build(source, name=then.name, home=home, progress=progress, **settings.model_dump())
    if record.synonyms:
        index.set_synonyms(record.synonyms)
    return index


def refuse_other_files(record: RunRecord, queries: Path, run: Path | None = None) -> None:
    """Raise ReplayFailed if queries or run are not those of a record.

    `replay` checks this, too; call it before building an index.
    """
    if sha256_of(queries) != record.queries.sha256:
        raise ReplayFailed(
            f"`{queries}` differs from the recorded `{record.queries.name}`; give the recorded file"
        )
    if run is not None and sha256_of(run) != record.run.sha256:
        raise ReplayFailed(
            f"`{run}` differs from the recorded run; give `{record.run.name}` as "
            "it was written, or leave it out"
        )


def _refuse_differences(then: Conditions, now: Conditions) -> None:
    here, there = now.index, then.index
    step = "give the documents as --source, and it is built as recorded"
    if here.format_version != there.format_version:
        raise ReplayFailed(
            f"index `{here.name}` has format {here.format_version}, and "
            f"{there.format_version} was recorded; replay with klsa-search "
            f"{there.package_version}"
        )
    for name, value in there.settings.items():
        if name not in here.settings or here.settings[name] != value:
            change = f"change it with `klsa-index settings {here.name}`, or "
            raise ReplayFailed(
                f"index `{here.name}` has {name} = {here.settings.get(name)!r}, and {value!r} was "
                f"recorded; {change if name in QUERY_SETTINGS else ''}{step}"
            )
    if any(here.files.get(name) != there.files.get(name) for name in _DOCUMENTS):
        raise ReplayFailed(
            f"{here.source} has other documents ({here.documents:,}) than the "
            f"recorded {there.source} ({there.documents:,}), or was read with "
            "other options (columns, sections, bad records); give the recorded "
            "documents and options"
        )
    if now.synonyms != then.synonyms:
        here_synonyms, there_synonyms = now.synonyms or {}, then.synonyms or {}
        words = {*here_synonyms, *there_synonyms}
        word = min(w for w in words if here_synonyms.get(w) != there_synonyms.get(w))
        raise ReplayFailed(
            f"index `{here.name}` has {_listed(here_synonyms.get(word))} as synonyms of "
            f"{word!r}, and {_listed(there_synonyms.get(word))} were recorded; set the "
            f"recorded ones (klsa-index synonyms {here.name} FILE), or {step}"
        )
    if now.tokenizer != then.tokenizer:
        raise ReplayFailed(
            f"the file of the tokenizer `{there.settings['tokenizer']}` has "
            "changed; put the recorded one on PYTHONPATH"
        )


def _listed(words: tuple[str, ...] | None) -> str:
    return ", ".join(words) if words else "none"


def _first_line(then: Path | None, now: Path) -> str:
    if then is None:
        return "give the recorded run as --run to see the first line that differs"
    with (
        then.open(encoding="utf-8", newline="") as before,
        now.open(encoding="utf-8", newline="") as after,
    ):
        for number, (was, is_) in enumerate(zip_longest(before, after, fillvalue=""), start=1):
            if was != is_:
                return f"line {number} was {was.strip()!r} and is {is_.strip()!r}"
    raise AssertionError("files with different checksums have no line that differs")
