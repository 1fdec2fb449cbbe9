"""Every setting of an index: frozen, checked once, fingerprinted into the manifest.

One flat set of names, the same in Python (`build(..., k1=2.0)`), in TOML (`k1 = 2.0`) and on the
command line (`--k1 2.0`). Each room takes the group it needs; `Settings` is all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from klsa_search.errors import SettingsError

RankerName = Literal["klsa", "bm25", "lsi"]


class SettingsGroup(BaseModel):
    """Base of all groups: immutable, nothing unknown, no silent conversion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def checked(cls, options: Mapping[str, Any]) -> Self:
        """Build from a mapping; the first offence becomes a `SettingsError` naming the setting."""
        try:
            return cls(**options)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else "settings"
            if first["type"] == "extra_forbidden":
                known = ", ".join(sorted(cls.model_fields))
                message = f"there is no setting {name!r}; the settings are: {known}"
            else:
                message = f"{name} = {first['input']!r}: {first['msg']}"
            raise SettingsError(message, field=name) from None


class AnalysisSettings(SettingsGroup):
    """Text to terms."""

    language: str = Field("english", description="language of stop words and stemmer, or none")
    stemmer: str = Field(
        "auto", description="a Snowball algorithm, auto for that of the language, or none"
    )
    stop_words: bool = Field(True, description="leave out the stop words of the language")
    fold_accents: bool = Field(False, description="treat é as e")


class KernelSettings(SettingsGroup):
    """BM25, for the query kernel and the document kernel alike [KLSA eq. 3-4]."""

    k1: float = Field(1.2, ge=0, le=100, description="saturation of term counts")
    b: float = Field(0.75, ge=0, le=1, description="weight of document length")


class SpectrumSettings(SettingsGroup):
    """The eigenvectors to keep."""

    dimensions: int = Field(300, ge=1, description="eigenvectors to keep (k of the paper)")
    seed: int = Field(0, ge=0, description="seed of the solver's start vector")


class ExpansionSettings(SettingsGroup):
    """How the document expansion D is kept."""

    expansion_budget: int = Field(
        256 * 2**20, ge=0, description="bytes up to which D is stored whole (4 N^2 are needed)"
    )


class SearchSettings(SettingsGroup):
    """What a query uses unless it says otherwise."""

    ranker: RankerName = Field("klsa", description="klsa, bm25 or lsi")
    alpha: float = Field(0.7, ge=0, le=1, description="share of the expansion; 0 is BM25")
    z: int = Field(10, ge=1, description="documents of the query kernel that seed the expansion")


class Settings(
    AnalysisSettings, KernelSettings, SpectrumSettings, ExpansionSettings, SearchSettings
):
    """All settings of one index."""

    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change when any setting does."""
        canonical = json.dumps(self.model_dump(), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    @classmethod
    def of_preset(cls, preset: str = "default", /, **changes: Any) -> Settings:
        """Settings of a preset with changes on top; SettingsError for an unknown name or value."""
        if preset not in PRESETS:
            known = ", ".join(sorted(PRESETS))
            raise SettingsError(
                f"there is no preset {preset!r}; there are: {known}", field="preset"
            )
        return cls.checked({**PRESETS[preset], **changes})


PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # The published method and its best point on CRAN [KLSA section 4]; never changes.
    "paper": {"k1": 2.0, "b": 0.75, "dimensions": 300, "ranker": "klsa", "z": 1, "alpha": 0.9},
}
