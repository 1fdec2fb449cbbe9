"""Record of a run: everything that its content depends on.

    record = record_run(index, queries, run, k, alpha=0.5)    writes the run
    write_record(record, path), read_record(path)             JSON

It has no date and no path, so the same run of the same index has the same record.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal, Unpack

from pydantic import ValidationError

from klsa_search.analysis.tokenizers import function_of
from klsa_search.collection.queries import read_query_lines
from klsa_search.core.config import LanguageSettings
from klsa_search.core.keywords import SearchParameters
from klsa_search.errors import ReplayFailed
from klsa_search.evaluation.runs import rank_best, recorded
from klsa_search.search.index import Index
from klsa_search.storage.manifest import Frozen, sha256_of

RECORD_VERSION: Final = 1
_PACKAGES: Final = [
    "klsa-search",
    "numpy",
    "PyStemmer",
    "rapidfuzz",
    "scipy",
    "stopwordsiso",
]
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
    parameters  all parameters of the searches, defaults of the index included
    dimensions  number of eigenvectors requested; None for all
    synonyms    of the index; None if the searches did not use them
    tokenizer   SHA-256 of the module of a tokenizer of the user
    versions    of Python and the packages that affect scores
    """

    record: Literal[1] = 1
    queries: QueriesEntry
    k: int
    parameters: dict[str, Any]
    dimensions: int | None
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
    dimensions: int | None = None,
    **parameters: Unpack[SearchParameters],
) -> RunRecord:
    """Run the queries of a file, write the run, and return its record.

    queries  file with lines of an ID, a tab and a text
    run      file to write, in TREC format; the tag is the name of the ranker

    Other parameters are those of `Index.rank_many`. Cost: that of the run, and of reading both
    files again. Raise ReplayFailed if the index was written to since its build; CollectionError;
    QueryError.
    """
    run_conditions = conditions(index, queries, k, dimensions, parameters)
    entry = write_run(run_conditions, index, queries, run, threads=threads)
    return RunRecord(**dict(run_conditions), run=entry)


def conditions(
    index: Index,
    queries: Path,
    k: int,
    dimensions: int | None,
    parameters: SearchParameters,
) -> Conditions:
    """Return what a run will depend on. See `record_run`."""
    if index.last_write.seq:
        raise ReplayFailed(
            f"index `{index.name}` has writes after its build, which a record "
            f"cannot describe; rebuild it with `klsa-index refit {index.name}`, or "
            "undo them with `klsa-index rollback --writes`"
        )
    chosen = index.parameters(**parameters).model_dump()
    reading = LanguageSettings.of(index.settings).model_dump()
    for name in reading:
        if parameters.get(name) is not None:
            reading[name] = parameters[name]  # type: ignore[literal-required]  # a name of both
    manifest = index.manifest
    return Conditions(
        queries=QueriesEntry(name=queries.name, sha256=sha256_of(queries)),
        k=k,
        parameters=reading | chosen,
        dimensions=dimensions,
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
        if reading["synonyms"]
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
        index,
        queries_of_file,
        run_conditions.k,
        threads=threads,
        dimensions=run_conditions.dimensions,
        **run_conditions.parameters,
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
        raw = json.loads(path.read_bytes())
        record_version = raw["record"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ReplayFailed(
            f"`{path}` is not a record of a run; give a file written by `klsa-search --record`"
        ) from None
    if record_version != RECORD_VERSION:
        raise ReplayFailed(
            f"`{path}` is a record of version {record_version!r}, and this version of "
            f"klsa-search reads {RECORD_VERSION}; replay it with the version that "
            "wrote it"
        )
    try:
        return RunRecord.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ReplayFailed(
            f"`{path}` is not a complete record of a run ({where}: "
            f"{first['msg']}); give the file as `klsa-search --record` wrote it"
        ) from None


def _module_checksum(tokenizer: str | None) -> str | None:
    """Return SHA-256 of the module of a tokenizer, because an index has only its name."""
    if tokenizer is None:
        return None
    module = function_of(tokenizer).__module__
    file = getattr(sys.modules[module], "__file__", None)
    return sha256_of(Path(file)) if file else None
