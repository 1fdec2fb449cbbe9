"""Settings of an index: immutable, validated once, fingerprinted in the manifest.

Names are flat, and the same in Python (`build(..., k1=2.0)`), in TOML (`k1 = 2.0`) and on the
command line (`--k1 2.0`). `IndexSettings` has their names and types for type checkers; a test
compares both. Each package uses the group it needs; `Settings` has all groups.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self, TypedDict

from pydantic import Field, field_validator, model_validator

from klsa_search.core.build_settings import (
    AnalysisSettings,
    DateOrder,
    DecimalSign,
    FieldSettings,
    IdentifiersName,
    IdfName,
    KernelSettings,
    PassageSettings,
    SpectrumSettings,
    StopWordsName,
    Tokenizer,
)
from klsa_search.core.field_weights import FieldWeights, SearchedFields, parse_weights
from klsa_search.core.parameters import MatchName, ParsingSettings, RankingSettings, SpellingName
from klsa_search.core.settings_group import SettingsGroup, conflict
from klsa_search.errors import SettingsError


class PageSettings(SettingsGroup):
    """Display of an index on the search page."""

    page_title: str = Field(
        "",
        max_length=100,
        description="show this title on the search page, instead of the name of the index",
    )


_OF_EXPANSION: Final = ("spectral", "gamma", "head", "dimensions")
"""Settings of `RankingSettings` on which the files of an index depend."""

QUERY_SETTINGS: Final = frozenset(
    {*PageSettings.model_fields, *ParsingSettings.model_fields, *RankingSettings.model_fields}
    - {*_OF_EXPANSION}
)
"""Settings that only queries use, so that they can change without a refit."""


class Settings(
    PageSettings,
    AnalysisSettings,
    KernelSettings,
    SpectrumSettings,
    FieldSettings,
    PassageSettings,
    ParsingSettings,
    RankingSettings,
):
    """All settings of one index."""

    @field_validator("operators")
    @classmethod
    def _not_in_every_query(cls, operators: bool | None) -> bool | None:
        if operators:
            reason = "true is only allowed for single queries; use false or leave it out"
            raise conflict("operators", reason, True)
        return operators

    @model_validator(mode="after")
    def _boosts_searched_fields(self) -> Self:
        if self.boosts:
            reason = unsearched(parse_weights(self.boosts), self.searched_fields)
            if reason is not None:
                raise conflict("boosts", reason, self.boosts)
        return self

    @property
    def searched_fields(self) -> SearchedFields:
        """Return the searched fields with their weights."""
        fields = SearchedFields.of(self.search)
        kind = self.identifiers
        return fields.with_identifiers(kind) if kind in ("parts", "pairs") else fields

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits that change with any setting."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    @classmethod
    def of_preset(cls, preset: str = "default", /, **changes: Any) -> Settings:
        """Return a preset with changes; SettingsError for an unknown name or value."""
        if not isinstance(preset, str) or preset not in PRESETS:
            choices = ", ".join(sorted(PRESETS))
            raise SettingsError(
                f"unknown preset {preset!r}; the presets are: {choices}", field="preset"
            )
        return cls.checked({**PRESETS[preset], **changes})


class IndexSettings(TypedDict, total=False):
    """Keyword arguments of `build`: all settings of an index, to be passed as `**settings`.

    >>> published: IndexSettings = {"k1": 2.0, "search": "title,text"}
    >>> build("reports.jsonl", name="reports", **published).settings.k1
    2.0
    """

    language: str | Sequence[str]
    language_field: str | None
    stemmer: str
    stop_words: StopWordsName
    tokenizer: str | Tokenizer | None
    extra_stop_words: tuple[str, ...] | list[str]
    fold_accents: bool | None
    symbols: bool
    k1: float
    b: float
    search: FieldWeights
    identifiers: IdentifiersName
    common_weight: float
    idf: IdfName
    burstiness: float
    kernel: str
    kernel_k1: float
    idf_power: float
    pairs: float
    centred: bool
    normalised: bool
    neighbours: int
    dimensions: int
    latent_dimensions: int
    seed: int
    fields: tuple[str, ...] | list[str]
    split: Mapping[str, str] | tuple[str, ...] | list[str]
    units: tuple[str, ...] | list[str]
    html: tuple[str, ...] | list[str] | None
    dates: DateOrder | None
    decimal: DecimalSign | None
    passages: str | int
    operators: bool | None
    spelling: SpellingName
    synonyms: bool
    match: MatchName
    ranker: str
    alpha: float
    hold_back: float
    z: int
    sharpness: float
    spectral: str
    gamma: float
    head: int
    unit_length: bool
    coverage: float
    latent: float
    lexical_sharpness: float
    passage_weight: float
    boosts: FieldWeights
    exact: bool
    page_title: str


def unsearched(names: Iterable[str], fields: SearchedFields) -> str | None:
    """Return why not all of these fields can be weighted; None if all are searched."""
    missing = [name for name in names if name not in fields.searched]
    if not missing:
        return None
    choices = ", ".join(f"`{name}`" for name in fields.searched)
    return f"`{missing[0]}` is not a searched field; the searched fields are: {choices}"


PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # The published method and its best point on CRAN [KLSA section 4]; never changes.
    "paper": {
        "passages": "off",
        "operators": False,
        "spelling": "off",
        "synonyms": False,
        "stop_words": "long",
        "fold_accents": False,
        "symbols": False,
        "search": "title,text",
        "identifiers": "off",
        "common_weight": 1.0,
        "burstiness": 1.0,
        "k1": 2.0,
        "b": 0.75,
        "kernel_k1": 2.0,
        "idf_power": 0.5,
        "pairs": 0.0,
        "centred": False,
        "normalised": False,
        "dimensions": 300,
        "ranker": "klsa",
        "alpha": 0.9,
        "hold_back": 0.0,
        "z": 1,
        "sharpness": 1.0,
        "spectral": "truncation",
        "head": 0,
        "unit_length": False,
        "coverage": 0.0,
        "latent": 0.0,
        "lexical_sharpness": 1.0,
    },
}
