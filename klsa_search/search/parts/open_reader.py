"""Open readers of indexes in this process, also of those that were pickled."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from klsa_search.analysis.tokenizers import trust
from klsa_search.errors import IndexNotFound, StoreError
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.parts.open_parts import LocalGroup, OpenParts
from klsa_search.search.parts.part_set import IndexFacts
from klsa_search.search.parts.reader import Reader
from klsa_search.search.state.state import QueryConfiguration
from klsa_search.storage.directories import is_index
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.write_log import LogPosition

Moment = tuple[Manifest, LogPosition, QueryConfiguration]
"""The manifest of a generation, the last write, and what queries used."""


def open_reader(path: Path, models: Models = NO_MODELS) -> Reader:
    """Open the index in a folder in this process."""
    return Reader(OpenParts(path, LocalGroup), models=models)


def reopening(reader: Reader) -> tuple[Path, str | None, Moment | None]:
    """Return the arguments by which `reopened` opens the state of a reader again.

    StoreError for a view of some documents, or of several partitions.
    """
    parts, moment = reader.parts, None
    if reader.is_read_only:
        if parts.facts.terms is not None or parts.parts[0].info.restricted:
            raise StoreError(
                "a restricted index, and a snapshot of several partitions, cannot be pickled; "
                "pickle the index itself"
            )
        facts = parts.facts
        moment = facts.manifest, facts.last_write, facts.configuration
    return reader.path.absolute(), reader.settings.tokenizer, moment


def reopened(path: Path, tokenizer: str | None, moment: Moment | None) -> Reader:
    """Open an index again whose reader had this path, or its generation as it was at a moment.

    tokenizer  trusted by the process that pickled the index; unpickling trusts that process
    moment     of a snapshot
    IndexNotFound if there is no such index, or another build has the path of the generation.
    """
    if tokenizer is not None:
        trust(tokenizer)
    if moment is None:
        if not is_index(path.parent):
            raise IndexNotFound(
                f"no index at `{path.parent}`, the path of the pickled index; restore the folder, "
                "or open the index with open_index"
            )
        return open_reader(path.parent)
    manifest, last, configuration = moment
    # Another build may have the name of one that was deleted, and its date and duration.
    if not path.is_dir() or read_manifest(path) != manifest:
        raise IndexNotFound(
            f"generation `{path}` of the pickled snapshot no longer exists; open the index and "
            "take a new snapshot"
        )
    facts = IndexFacts(path, manifest, configuration, [path])
    return Reader(OpenParts(path.parent, partial(LocalGroup, until=last), facts))
