"""Settings of an index: immutable, validated once, fingerprinted in the manifest.

Names are flat, and the same in Python (`build(..., k1=2.0)`), in TOML (`k1 = 2.0`) and on the
command line (`--k1 2.0`). Each package uses the group it needs; `Settings` has all groups.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from klsa_search.core.field_weights import (
    DEFAULT,
    SearchedFields,
    parse_weights,
)
from klsa_search.core.parameters import (
    Alpha,
    Boosts,
    Coverage,
    Exact,
    Gamma,
    Head,
    HoldBack,
    Latent,
    LexicalSharpness,
    Match,
    Operators,
    PassageWeight,
    Ranker,
    Sharpness,
    Spectral,
    Spelling,
    Synonyms,
    UnitLength,
    Z,
    conflict,
)
from klsa_search.core.plugins import PluginName
from klsa_search.errors import SettingsError

DateOrder = Literal["day-first", "month-first"]
"""Order in dates such as 3/5/2025."""
DecimalSign = Literal["comma", "point"]
"""Sign before the decimals of a number."""
StopWordsName = Literal["short", "long", "none"]
IdfName = Literal["lucene", "robertson", "atire"]
KERNEL_NAMES: Final = PluginName("kernel", ("bm25",))
Kernel = Annotated[str, KERNEL_NAMES]
"""Name of the built-in weighting of document features or of a plug-in."""

TOKENIZER_NAMES: Final = PluginName("tokenizer", ())
FieldType = Literal["keyword", "number", "date"]

PASSAGE_WORDS = 300
"""Words of a passage, by default."""

MAX_BURSTINESS = 4
"""Limit of `burstiness`; above it scores of the longest query would not fit into 32 bits."""

MAX_FIELDS = 100
"""Limit of the number of metadata fields that are columns."""


def optional_fields(group: type[BaseModel]) -> dict[str, Any]:
    """Return the settings of a group as optional fields for `create_model`."""
    return {
        name: (
            Annotated[field.annotation, Field(), *field.metadata] | None,
            Field(None, description=field.description),
        )
        for name, field in group.model_fields.items()
    }


class SettingsGroup(BaseModel):
    """Base class of the groups: immutable, no unknown names, no conversion, finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def checked(cls, options: Mapping[str, Any]) -> Self:
        """Return the group made of a mapping; SettingsError names the first invalid setting."""
        try:
            return cls(**options)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "misfit":
                name, message = first["ctx"]["field"], first["msg"]
                raise SettingsError(message, field=name) from None
            name = str(first["loc"][0]) if first["loc"] else "settings"
            if first["type"] == "extra_forbidden":
                known = ", ".join(sorted(cls.model_fields))
                message = f"unknown setting {name!r}; the settings are: {known}"
            else:
                message = f"{name} = {first['input']!r}: {first['msg']}"
            raise SettingsError(message, field=name) from None

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Return this group of settings that contain it."""
        return cls(**{name: getattr(settings, name) for name in cls.model_fields})


class AnalysisSettings(SettingsGroup):
    """Settings of the analyser: text to terms."""

    language: str = Field(
        "auto",
        description="use the stop words and stemmer of this language, by name or code (german "
        "or de); none; or auto, that of most of the text, English if there is too little to tell",
    )
    stemmer: str = Field(
        "auto", description="use this Snowball stemmer; auto for that of the language, or none"
    )
    stop_words: StopWordsName = Field(
        "short",
        description="ignore stop words: short, 33 of English and none of other languages; "
        "long, all on the list of the language; or none",
    )
    own_stop_words: Annotated[
        tuple[str, ...],
        # TOML and JSON have lists.
        BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given),
    ] = Field((), description="ignore these words too")
    fold_accents: bool | None = Field(
        None,
        description="treat é as e, for all letters with marks; by default not for marked "
        "letters that are part of the alphabet of the language "
        "(docs/guides/import-documents.md)",
    )
    symbols: bool = Field(True, description="keep the signs of names such as C++, C# and .NET")
    tokenizer: str | None = Field(
        None,
        # MODULE:FUNCTION, or any text without a colon.
        pattern=r"^([^:]+|[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*)$",
        description="find words with this function, MODULE:FUNCTION, or the plug-in of this "
        "name, instead of the rules for all scripts (docs/guides/import-documents.md)",
    )

    @field_validator("tokenizer", mode="after")
    @classmethod
    def _installed(cls, given: str | None) -> str | None:
        return given if given is None or ":" in given else TOKENIZER_NAMES.checked(given)


def _searched(given: object) -> str:
    try:
        return str(SearchedFields.of(given))
    except ValueError as error:
        raise conflict("search", str(error), given) from None


class KernelSettings(SettingsGroup):
    """Settings of the query kernel and the document kernel K [KLSA eq. 3-4]."""

    k1: float = Field(1.2, ge=0, le=100, description="set the saturation of term counts in BM25")
    b: float = Field(0.75, ge=0, le=1, description="set the weight of the document length in BM25")
    search: Annotated[str, BeforeValidator(_searched)] = Field(
        DEFAULT,
        description="search these fields: title, text and metadata fields, as NAME or "
        "NAME^WEIGHT, separated by commas; words count by the weight of their field, a whole "
        "number from 1 to 16",
    )
    common_weight: float = Field(
        0.5,
        ge=0.01,
        le=1,
        description="weight query words on the long stop list that are not ignored; the "
        "document features leave them out; 1 treats them like other words",
    )
    idf: IdfName = Field(
        "lucene",
        description="weight query words in n of N documents by: lucene, ln(1 + (N - n + 0.5) "
        "/ (n + 0.5)); robertson, the same without 1 + and not below 0; or atire, "
        "ln(N / n)",
    )
    burstiness: float = Field(
        2.0,
        ge=1,
        le=MAX_BURSTINESS,
        description="multiply the weight of bursty terms, frequent in few documents, by up to "
        "this; 1 is plain idf",
    )
    kernel: Kernel = Field(
        "bm25",
        description="weight the document features by bm25, or by the plug-in of this name",
    )
    kernel_k1: float = Field(3.0, ge=0, le=100, description="set k1 of the document kernel")
    idf_power: float = Field(
        1.0,
        ge=0,
        le=2,
        description="set p in w(t)^p sat(t,d), the document features; 0.5 in the paper",
    )
    pairs: float = Field(
        0.5, ge=0, le=10, description="weight adjacent word pairs among the document features"
    )
    centred: bool = Field(True, description="subtract the mean document from the document features")
    normalised: bool = Field(True, description="normalise the document features to length 1")
    neighbours: int = Field(
        20, ge=1, le=1000, description="keep this many nearest documents for coverage"
    )


class SpectrumSettings(SettingsGroup):
    """Settings of the eigenvectors."""

    dimensions: int = Field(300, ge=1, description="keep this many eigenvectors (k of the paper)")
    latent_dimensions: int = Field(
        50, ge=1, description="use this many eigenvectors for the latent cosine"
    )
    seed: int = Field(0, ge=0, description="seed the start vector of the solver")


def _split_fields(given: object) -> object:
    """Return separators by name as settings: NAME=SEPARATOR."""
    if isinstance(given, list):  # of TOML and JSON
        return tuple(given)
    if not isinstance(given, Mapping):
        return given
    for name in given:
        if not isinstance(name, str) or "=" in name:
            raise conflict("split", "the name of a split field must be a text without =", name)
    return tuple(f"{name}={separator}" for name, separator in given.items())


class FieldSettings(SettingsGroup):
    """Metadata fields declared as columns; others are detected by their values."""

    fields: Annotated[
        tuple[str, ...],
        # TOML and JSON have lists.
        BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given),
    ] = Field(
        (),
        max_length=MAX_FIELDS,
        description="make this metadata field filterable: NAME:keyword, NAME:number, "
        "NAME:date, or NAME alone, for the type of its first value",
    )

    split: Annotated[tuple[str, ...], BeforeValidator(_split_fields)] = Field(
        (),
        max_length=MAX_FIELDS,
        description="divide texts of this metadata field into a list of values: "
        "NAME=SEPARATOR, as in 'tags=;'",
    )

    html: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given),
    ] = Field(
        None,
        max_length=MAX_FIELDS,
        description="read HTML in this field (title, text or metadata) as text; none keeps it; "
        "by default the fields of which most values hold HTML",
    )
    dates: DateOrder | None = Field(
        None,
        description="read dates of metadata fields such as 3/5/2025 in this order; by default "
        "their values decide",
    )
    decimal: DecimalSign | None = Field(
        None,
        description="read numbers in texts of metadata fields, such as 1.250, with this decimal "
        "sign; by default their values decide",
    )

    @field_validator("split", mode="after")
    @classmethod
    def _split_once(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        names = set()
        for each in given:
            name, _, separator = each.partition("=")
            if not name.strip() or not separator:
                raise conflict("split", "give NAME=SEPARATOR, as in 'tags=;'", each)
            if name in names:
                raise conflict("split", f"{name!r} is split twice", each)
            names.add(name)
        return tuple(sorted(given))

    @field_validator("html", mode="after")
    @classmethod
    def _html_once(cls, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if given is not None and not all(map(str.strip, given)):
            raise conflict("html", "give the name of a field", "")
        return None if given is None else tuple(sorted(set(given)))

    @field_validator("fields", mode="after")
    @classmethod
    def _named_once(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        names = set()
        for declaration in given:
            name, colon, kind = _parts(declaration)
            if not name.strip():
                raise conflict("fields", "the name is missing", declaration)
            if colon and kind not in get_args(FieldType):
                known = ", ".join(get_args(FieldType))
                reason = f"the type after the last colon must be one of: {known}"
                raise conflict("fields", reason, declaration)
            if name in names:
                raise conflict("fields", f"{name!r} is declared twice", declaration)
            names.add(name)
        return tuple(sorted(given))

    def declared(self) -> dict[str, FieldType | None]:
        """Return declared fields by name with their types; None means that of the first value."""
        parts = map(_parts, self.fields)
        types: dict[str, FieldType] = {kind: kind for kind in get_args(FieldType)}
        return {name: types.get(kind) if colon else None for name, colon, kind in parts}

    def separators(self) -> dict[str, str]:
        """Return the separators of split fields by name."""
        return {name: separator for name, _, separator in (e.partition("=") for e in self.split)}


_PASSAGES = "auto|off|[1-9][0-9]{1,4}"
"""Pattern of the setting `passages`."""


def _passages(given: object) -> object:
    """Return the text of the setting, which may be given as a number of words."""
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    if isinstance(text, str) and not re.fullmatch(_PASSAGES, text):
        reason = "use auto, off, or the words of a passage, from 10 to 99999"
        raise conflict("passages", reason, given)
    return text


class PassageSettings(SettingsGroup):
    """Passages of long documents, which are searched as well as whole documents."""

    passages: Annotated[str, BeforeValidator(_passages)] = Field(
        "auto",
        pattern=f"^({_PASSAGES})$",
        description="divide long documents into passages of about this many words, which are "
        "found and ranked as well: 10 to 99,999; auto, 300 if documents are long enough for a "
        "tenth more passages than documents; or off",
    )

    @property
    def passage_words(self) -> int | None:
        """Return the words of a passage; None if documents are not divided."""
        if self.passages == "off":
            return None
        return PASSAGE_WORDS if self.passages == "auto" else int(self.passages)


def _parts(declaration: str) -> tuple[str, str, str]:
    """Return name, colon and type of a declaration; the last two are blank without a type."""
    name, colon, kind = declaration.rpartition(":")
    return (name, colon, kind) if colon else (declaration, "", "")


class LanguageSettings(SettingsGroup):
    """Defaults for parsing queries."""

    operators: Operators = None
    spelling: Spelling = "auto"
    synonyms: Synonyms = True
    match: Match = "any"


class PageSettings(SettingsGroup):
    """Display of an index on the search page."""

    page_title: str = Field(
        "",
        max_length=100,
        description="show this title on the search page, instead of the name of the index",
    )


class SearchSettings(SettingsGroup):
    """Defaults for ranking."""

    ranker: Ranker = "klsa"
    alpha: Alpha = 0.7
    hold_back: HoldBack = 0.7
    z: Z = 20
    sharpness: Sharpness = 5.0
    spectral: Spectral = "gvsm"
    gamma: Gamma = 0.3
    head: Head = 0
    unit_length: UnitLength = True
    coverage: Coverage = 0.4
    latent: Latent = 0.2
    lexical_sharpness: LexicalSharpness = 8.0
    passage_weight: PassageWeight = 1.0
    boosts: Boosts = ""
    exact: Exact = False

    @property
    def boost_factors(self) -> dict[str, float]:
        """Return the factors of boosted fields by name."""
        return parse_weights(self.boosts)

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.spectral == "von-neumann" and self.gamma >= 1:
            raise conflict("gamma", "the von Neumann kernel needs gamma below 1", self.gamma)
        if self.spectral == "exponential" and self.gamma > 20:
            raise conflict("gamma", "the exponential kernel needs gamma of at most 20", self.gamma)
        if self.spectral == "squashing" and self.gamma < 1e-4:
            raise conflict("gamma", "squashing needs gamma of at least 0.0001", self.gamma)
        if self.coverage + self.latent > 1:
            raise conflict("latent", "coverage and latent add up to more than 1", self.latent)
        return self


def _not_in_every_query(operators: bool | None) -> bool | None:
    if operators:
        raise conflict(
            "operators", "true is only allowed for single queries; use false or leave it out", True
        )
    return operators


_OF_EXPANSION: Final = ("spectral", "gamma", "head")
"""Settings of `SearchSettings` on which the files of an index depend."""

QUERY_SETTINGS: Final = frozenset(
    {*PageSettings.model_fields, *LanguageSettings.model_fields, *SearchSettings.model_fields}
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
    LanguageSettings,
    SearchSettings,
):
    """All settings of one index."""

    _checked_operators = field_validator("operators")(_not_in_every_query)

    @model_validator(mode="after")
    def _boosts_searched_fields(self) -> Self:
        if self.boosts:
            reason = unsearched(self.boost_factors, self.searched_fields)
            if reason is not None:
                raise conflict("boosts", reason, self.boosts)
        return self

    @property
    def searched_fields(self) -> SearchedFields:
        """Return the searched fields with their weights."""
        return SearchedFields.of(self.search)

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits that change with any setting."""
        return fingerprint_of_settings(self.model_dump(mode="json"))

    @classmethod
    def of_preset(cls, preset: str = "default", /, **changes: Any) -> Settings:
        """Return a preset with changes; SettingsError for an unknown name or value."""
        if not isinstance(preset, str) or preset not in PRESETS:
            known = ", ".join(sorted(PRESETS))
            raise SettingsError(
                f"unknown preset {preset!r}; the presets are: {known}", field="preset"
            )
        return cls.checked({**PRESETS[preset], **changes})


def unsearched(names: Iterable[str], fields: SearchedFields) -> str | None:
    """Return why not all of these fields can be weighted; None if all are searched."""
    missing = [name for name in names if name not in fields.searched]
    if not missing:
        return None
    known = ", ".join(f"`{name}`" for name in fields.searched)
    return f"`{missing[0]}` is not a searched field; the searched fields are: {known}"


def fingerprint_of_settings(settings: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that change with any setting."""
    canonical = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


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
