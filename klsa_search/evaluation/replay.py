"""Replay of a recorded run, with the first difference if there is one."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, cast

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Collection
from klsa_search.core.config import QUERY_SETTINGS, Settings
from klsa_search.core.keywords import SearchParameters
from klsa_search.core.progress import Progress
from klsa_search.errors import ReplayFailed, SettingsError
from klsa_search.evaluation.record import Conditions, RunEntry, RunRecord, conditions, write_run
from klsa_search.indexing.build import build
from klsa_search.search.index import Index
from klsa_search.storage.manifest import sha256_of

_DOCUMENTS: Final = ("documents.npy", "documents_starts.npy")
"""Files of an index that depend on its documents alone."""


class Replayed(NamedTuple):
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
) -> Replayed:
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
    now = conditions(index, queries, record.k, record.dimensions, parameters)
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
    return Replayed(entry, files, versions)


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
    """Raise ReplayFailed for the first difference of an index from the recorded one."""
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
    """Return a description of the first line that differs between two runs."""
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
