"""The manifest: what a generation holds, written last, read first."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from klsa_search.core.config import FieldType, Settings
from klsa_search.errors import FormatUnsupported, IndexDamaged, SettingsError, StoreError
from klsa_search.storage.current import read_current, repair_step
from klsa_search.storage.files import is_exhausted, read_regular
from klsa_search.storage.names import MANIFEST

FORMAT_VERSION = 5
FORMER_VERSIONS = (3, 4)
"""Those that are read once more, to be carried over: see `former`."""


class Frozen(BaseModel):
    """Base of the manifest's parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")


FileName = Annotated[str, StringConstraints(pattern=r"^\w[\w.-]*$")]
"""A plain name, so that a manifest never leads out of its generation."""


_AS_IT_WAS: Final = {"symbols": False}
"""Values of settings that an index of this format may have been built without."""

_FORMER_EXPANSIONS: Final = {"whole": "dense", "factors": "factored", "cut": "sparse"}
"""Values of `expansion` up to version 0.2, and what they are called now."""


class FileEntry(Frozen):
    """One file of the generation."""

    bytes: int
    sha256: str


class Counts(Frozen):
    """Sizes of what was indexed."""

    documents: int
    terms: int
    tokens: int
    non_zeros: int
    skipped: int


class SpectrumEntry(Frozen):
    """Diagnostics of one decomposition; see `spectrum.Spectrum`."""

    dimensions: int
    largest: float
    smallest: float
    residual: float
    gap: float
    captured: float  # share of the trace


class BuildEntry(Frozen):
    """How the build went; not part of the fingerprint."""

    created: str  # ISO 8601, UTC
    seconds: float
    peak_memory: int  # bytes, of the process


class ColumnEntry(Frozen):
    """One metadata field that is a column.

    missing  documents without a value
    values   that it holds: one a document, or as many as there are in lists
    misfits  documents with a value that is not of the type, which counts as missing
    lists    whether some document has several
    texts    different ones, of a keyword field
    """

    type: FieldType
    missing: int
    misfits: int = 0
    values: int
    lists: bool = False
    texts: int = 0


class FieldsEntry(Frozen):
    """The metadata fields.

    columns  by name, in their order on disk
    others   fields that are no columns, and why
    more     whether there are still others, which were not looked at
    """

    columns: dict[str, ColumnEntry] = {}
    others: dict[str, str] = {}
    more: bool = False


class Manifest(Frozen):
    """Everything known of a generation without opening its arrays.

    source_path  path of the source, for files and folders; it distinguishes sources of the same
                 name, and is not part of the fingerprint
    """

    format_version: int
    package_version: str
    source: str
    fingerprint: str
    settings: dict[str, Any]
    counts: Counts
    spectra: dict[str, SpectrumEntry]
    build: BuildEntry
    files: dict[FileName, FileEntry]
    source_path: str | None = None
    fields: FieldsEntry = FieldsEntry()

    def checked_settings(self) -> Settings:
        """Return the settings the index was built with; IndexDamaged if they do not hold."""
        try:
            return settings_as_built(self.settings)
        except SettingsError as error:
            raise IndexDamaged(
                f"the manifest of `{self.source}` has invalid settings "
                f"({error.message}); run `klsa-index repair` on the index"
            ) from error

    def bytes(self) -> int:
        """Size of all files but the manifest."""
        return sum(entry.bytes for entry in self.files.values())


def settings_as_built(settings: Mapping[str, Any]) -> Settings:
    """Read settings that were written down when an index was built; SettingsError.

    What was no setting then is what it was then; `operators` was true where it is auto now.
    """
    given = {**_AS_IT_WAS, **settings}
    if given.get("expansion") in _FORMER_EXPANSIONS:
        given["expansion"] = _FORMER_EXPANSIONS[given["expansion"]]
    return Settings.checked(given | {"operators": None} if given.get("operators") else given)


def read_manifest(generation: Path, *, former: bool = False) -> Manifest:
    """Read `manifest.json` of a generation, and compare its sum with CURRENT's.

    former  take one of a former format version too
    FormatUnsupported for another format version; IndexDamaged if it is missing, broken, or not
    what was built. OSError where the process has too many files open.
    """
    path = generation / MANIFEST
    try:
        content = read_regular(path)
        raw = json.loads(content)
        version = raw["format_version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if is_exhausted(error):
            raise
        raise IndexDamaged(f"cannot read `{path}` ({error}); {_step(generation)}") from error
    known = _known_sum(generation)
    if known and known != hashlib.sha256(content).hexdigest():
        raise IndexDamaged(f"`{path}` has changed since it was built; {_step(generation)}")
    if version != FORMAT_VERSION and not (former and version in FORMER_VERSIONS):
        step = "rebuild it with `klsa-index build`"
        if isinstance(version, int) and version > FORMAT_VERSION:
            step = f"a later version of klsa-search built it; install that version, or {step}"
        elif version in FORMER_VERSIONS:
            name, home = generation.parent.name, str(generation.parent.parent)
            step = (
                f"upgrade it with `{shlex.join(['klsa-index', 'upgrade', name, '--home', home])}`"
            )
        raise FormatUnsupported(
            f"`{generation}` has format {version}, and this version reads {FORMAT_VERSION}; {step}"
        )
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IndexDamaged(
            f"`{path}` is damaged: {where}: {first['msg']}; {_step(generation)}"
        ) from error


def _step(generation: Path) -> str:
    return repair_step(generation.parent)


def files_of(path: Path) -> Collection[str] | None:
    """Names of the files that a manifest of whatever format version lists; None if it is none."""
    try:
        raw = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError) as error:
        if is_exhausted(error):
            raise
        return None
    ours = isinstance(raw, dict) and {"format_version", "fingerprint", "files"} <= raw.keys()
    return raw["files"] if ours and isinstance(raw["files"], dict) else None


def _known_sum(generation: Path) -> str | None:
    """SHA-256 of its manifest, as CURRENT has it; None where it says nothing of the generation."""
    try:
        return read_current(generation.parent).sums.get(generation.name)
    except StoreError:
        return None  # through CURRENT this is known; after a rollback, read on


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file, read once."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
