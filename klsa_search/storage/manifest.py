"""The manifest: content, settings and checksums of a generation; written last, read first.

Settings that only queries use may change after the build; changes are rows of the catalogue. They
belong to the build, like the log of writes: a refit makes the next one with them, and a rollback
returns to those of the earlier one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from klsa_search.core.build_settings import KERNEL_NAMES, TOKENIZER_NAMES, FieldType
from klsa_search.core.config import QUERY_SETTINGS, Settings
from klsa_search.core.parameters import RANKER_NAMES, SPECTRAL_NAMES
from klsa_search.core.plugins import Plugin, PluginKind, find_plugin
from klsa_search.errors import (
    FormatUnsupported,
    IndexDamaged,
    PluginMissing,
    SettingsError,
    StoreError,
)
from klsa_search.storage.catalog_entry import Entry, change_entry, read_entry
from klsa_search.storage.current import changed_file_error, read_current, step_for
from klsa_search.storage.files import is_exhausted, read_regular, unreadable
from klsa_search.storage.names import MANIFEST

FORMAT_VERSION = 11  # the first public one: 1 to 10 were of development


class Frozen(BaseModel):
    """Base of the manifest's parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")


FileName = Annotated[str, StringConstraints(pattern=r"^(passages/)?\w[\w.-]*$")]
"""A plain file name, or one within the folder of passages: never a path that leads outside."""


class FileEntry(Frozen):
    """One file of a generation."""

    bytes: int
    sha256: str


class Counts(Frozen):
    """Sizes of the indexed collection.

    passages  of its documents; None if these are not divided, and only written otherwise
    """

    documents: int
    terms: int
    tokens: int
    non_zeros: int
    skipped: int
    passages: int | None = None


class SpectrumEntry(Frozen):
    """Diagnostics of one decomposition; see `lowrank.eigensolver.Decomposition`."""

    dimensions: int
    largest: float
    smallest: float
    residual: float
    gap: float
    captured: float  # share of the trace


class BuildEntry(Frozen):
    """Date, duration and memory of the build; not part of the fingerprint."""

    created: str  # ISO 8601, UTC
    seconds: float
    peak_memory: int  # bytes, of the process


class ColumnEntry(Frozen):
    """One filterable metadata field.

    missing  documents without a value
    values   stored values: one a document, or all values of lists
    type_mismatches
             documents with a value of another type, which counts as missing
    lists    whether a document has several
    texts    distinct texts of a keyword field
    codes    whether its numbers are codes, such as EANs, rather than quantities
    """

    type: FieldType
    missing: int
    type_mismatches: int = 0
    values: int
    lists: bool = False
    texts: int = 0
    codes: bool = False


class SpaceEntry(Frozen):
    """One space of vectors.

    vectors      of all documents
    documents    with a vector
    fingerprint  of the embedder that computed them; None if they were given
    """

    name: str
    dimension: int
    vectors: int
    documents: int
    fingerprint: str | None = None


class LanguageEntry(Frozen):
    """A detected language, and the share of the text that is in it."""

    language: str
    share: float


class FieldsEntry(Frozen):
    """The metadata fields.

    columns  filterable fields by name, in their order on disk
    others   fields that are not filterable, and why
    more     whether there are further fields, which were not examined
    """

    columns: dict[str, ColumnEntry] = {}
    others: dict[str, str] = {}
    more: bool = False


class Manifest(Frozen):
    """Description of a generation that needs none of its arrays.

    source_path  path of a source that is a file or folder; it distinguishes sources of the same
                 name, and is not part of the fingerprint
    reading      options with which the source was read, without defaults, for `Index.sync`
    vectors      spaces of vectors, in the order of their files
    plugins      plug-ins among the settings, by kind
    detected     languages of the settings, if they named none, the commonest first
    trained      after a compaction: number of documents that have the words of a document of the
                 training, which are the first ones unless an array says otherwise
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
    reading: dict[str, Any] = {}
    vectors: list[SpaceEntry] = []
    plugins: dict[PluginKind, Plugin] = {}
    detected: list[LanguageEntry] = []
    trained: int | None = None

    def checked_settings(self) -> Settings:
        """Return the settings of the build; IndexDamaged if they are invalid.

        Raise PluginMissing if a plug-in is not installed, or in another version.
        """
        self._require_plugins()
        try:
            return Settings.checked(self.settings)
        except SettingsError as error:
            raise IndexDamaged(
                f"the manifest of `{self.source}` has invalid settings "
                f"({error.message}); run `klsa-index repair` on the index"
            ) from error

    def _require_plugins(self) -> None:
        for kind, built in self.plugins.items():
            plugin = find_plugin(kind, built.name)
            # A ranker only reads: nothing stored depends on its version.
            if plugin is not None and (kind == "ranker" or plugin == built):
                continue
            fact = "is not installed"
            if plugin is not None:
                fact = f"is now that of {plugin.distribution} {plugin.version}"
            package = f"{built.distribution} {built.version}"
            raise PluginMissing(
                f"the index of `{self.source}` was built with {kind} `{built.name}` of {package}, "
                f"which {fact}; install {package}, or build the index again from its source",
                field=kind,
            )

    def as_text(self) -> str:
        """Return the content of the file."""
        return self.model_dump_json(indent=1) + "\n"

    @property
    def has_passages(self) -> bool:
        """Return whether documents are divided into passages, which have an index."""
        return self.counts.passages is not None

    def bytes(self) -> int:
        """Return the size of all files but the manifest."""
        return sum(entry.bytes for entry in self.files.values())


def plugins_of(settings: Settings) -> dict[PluginKind, Plugin]:
    """Return the plug-ins among settings, by kind."""
    plugins: dict[PluginKind, Plugin] = {}
    for names in (KERNEL_NAMES, RANKER_NAMES, SPECTRAL_NAMES, TOKENIZER_NAMES):
        name = getattr(settings, names.kind)
        if name is None or name in names.built_in or ":" in name:
            continue
        plugin = find_plugin(names.kind, name)
        if plugin is not None:
            plugins[names.kind] = plugin
    return plugins


def read_manifest(generation: Path) -> Manifest:
    """Read `manifest.json` of a generation, and compare its checksum with CURRENT.

    Raise FormatUnsupported for another format version; IndexDamaged if it is missing, invalid or
    has changed. Raise OSError if the process has too many open files.
    """
    path = generation / MANIFEST
    try:
        content = read_regular(path)
    except OSError as error:
        raise unreadable(path, error, step_for(path)) from error
    try:
        expected_sum = read_current(generation.parent).sums.get(generation.name)
    except StoreError:  # opening through CURRENT reports this; after a rollback, read on
        expected_sum = None
    return parse_manifest(content, path, expected_sum)


def parse_manifest(content: bytes, path: Path, expected_sum: str | None = None) -> Manifest:
    """Return the manifest of a generation from the content of its file; errors: `read_manifest`."""
    try:
        raw = json.loads(content)
        version = raw["format_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise unreadable(path, error, step_for(path)) from error
    if expected_sum and expected_sum != hashlib.sha256(content).hexdigest():
        raise changed_file_error(path)
    if version != FORMAT_VERSION:
        step = "rebuild it with `klsa-index build`"
        if isinstance(version, int) and version > FORMAT_VERSION:
            step = f"a later version of klsa-search built it; install that version, or {step}"
        raise FormatUnsupported(
            f"`{path.parent}` has format {version}, and this version reads {FORMAT_VERSION}; {step}"
        )
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IndexDamaged(
            f"`{path}` is damaged: {where}: {first['msg']}; {step_for(path)}"
        ) from error


def is_manifest(path: Path) -> bool:
    """Return whether a file is a manifest, of any format version."""
    try:
        raw = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError) as error:
        if is_exhausted(error):
            raise
        return False
    return isinstance(raw, dict) and {"format_version", "fingerprint", "files"} <= raw.keys()


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file, read once."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def stored_settings(entry: Entry, build: str, built: Settings) -> Settings:
    """Return the settings of a build of an index, with later changes; IndexDamaged.

    build  name of its generation, or of the build of all partitions
    """
    changes: dict[str, str] = dict(entry.rows("settings"))
    if build not in changes:
        return built
    return Settings.checked(built.model_dump() | json.loads(changes[build]))


def current_settings(generation: Path, manifest: Manifest) -> Settings:
    """Return the settings of a generation: of its build, with later changes; IndexDamaged."""
    with read_entry(generation.parent) as entry:
        return stored_settings(entry, generation.name, manifest.checked_settings())


def current_manifest(generation: Path) -> Manifest:
    """Return the manifest of a generation, with its current settings; errors: `read_manifest`."""
    manifest = read_manifest(generation)
    settings = current_settings(generation, manifest)
    return manifest.model_copy(update={"settings": settings.model_dump(mode="json")})


def replace_settings(generation: Path, built: Settings, settings: Settings) -> None:
    """Replace the changed query settings of a generation by those that differ from its build's.

    built  settings of the build
    The caller has the lock of the log, so that no refit begins to use the earlier ones.
    """
    old, new = built.model_dump(mode="json"), settings.model_dump(mode="json")
    changes = {name: new[name] for name in sorted(QUERY_SETTINGS) if new[name] != old[name]}
    write_settings(generation, changes)


def write_settings(generation: Path, changes: Mapping[str, Any]) -> None:
    """Replace the changed settings of a generation; none removes them, if there are any."""
    path = generation.parent
    with read_entry(path) as entry:
        if not changes and entry.id is None:
            return
    with change_entry(path) as entry:
        entry.delete("settings", "build = ?", [generation.name])
        if changes:
            row = generation.name, json.dumps(changes, ensure_ascii=False)
            entry.insert("settings", [row])
