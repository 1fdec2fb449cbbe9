"""The manifest: what a generation holds, written last, read first."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from klsa_search.config import Settings
from klsa_search.errors import FormatUnsupported, IndexDamaged, SettingsError

FORMAT_VERSION = 4
MANIFEST = "manifest.json"


class Frozen(BaseModel):
    """Base of the manifest's parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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


class Manifest(Frozen):
    """Everything known of a generation without opening its arrays."""

    format_version: int
    package_version: str
    source: str
    fingerprint: str
    settings: dict[str, Any]
    counts: Counts
    spectra: dict[str, SpectrumEntry]
    build: BuildEntry
    files: dict[str, FileEntry]

    def checked_settings(self) -> Settings:
        """Return the settings the index was built with; IndexDamaged if they do not hold."""
        try:
            return Settings.checked(self.settings)
        except SettingsError as error:
            raise IndexDamaged(
                f"the manifest of {self.source} has settings that do not hold "
                f"({error.message}): rebuild the index with klsa-index build"
            ) from error

    def bytes(self) -> int:
        """Size of all files but the manifest."""
        return sum(entry.bytes for entry in self.files.values())


def read_manifest(generation: Path) -> Manifest:
    """Read `manifest.json` of a generation.

    FormatUnsupported for another format version, IndexDamaged if it is missing or broken.
    """
    path = generation / MANIFEST
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        version = raw["format_version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexDamaged(
            f"{path} cannot be read ({error}): rebuild the index with klsa-index build"
        ) from error
    if version != FORMAT_VERSION:
        raise FormatUnsupported(
            f"{generation} holds format {version}, this version reads {FORMAT_VERSION}: "
            "rebuild it with klsa-index build"
        )
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IndexDamaged(
            f"{path}: {where}: {first['msg']}: rebuild the index with klsa-index build"
        ) from error


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file, read once."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
