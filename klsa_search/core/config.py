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
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from klsa_search.core.field_weights import (
    DEFAULT,
    SearchedFields,
    parse_weights,
    write_weights,
)
from klsa_search.core.plugins import PluginName
from klsa_search.errors import SettingsError

RankerName = Literal["klsa", "bm25", "rm3", "rocchio", "lsi", "lsi-cosine"]
"""Names of the built-in rankers."""

RANKER_NAMES: Final = PluginName("ranker", get_args(RankerName))
Ranker = Annotated[str, RANKER_NAMES]
"""Name of a built-in ranker or of a plug-in."""
DateOrder = Literal["day-first", "month-first"]
"""Order in dates such as 3/5/2025."""
DecimalSign = Literal["comma", "point"]
"""Sign before the decimals of a number."""
SpellingName = Literal["auto", "suggest", "off"]
MatchName = Literal["any", "most", "all"]
StopWordsName = Literal["short", "long", "none"]
IdfName = Literal["lucene", "robertson", "atire"]
SpectralName = Literal["truncation", "squashing", "von-neumann", "exponential", "gvsm"]
"""Names of the built-in functions of the spectrum."""

SPECTRAL_NAMES: Final = PluginName("spectral", get_args(SpectralName))
Spectral = Annotated[str, SPECTRAL_NAMES]
"""Name of a built-in function of the spectrum or of a plug-in."""

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

MIN_BOOST = 0.01
MAX_BOOST = 100
"""Limits of the factor of a field in a query."""


def _conflict(field: str, reason: str, value: object) -> PydanticCustomError:
    """Return an error that names the setting to change."""
    context = {"field": field, "reason": reason, "value": repr(value)}
    return PydanticCustomError("misfit", "{field} = {value}: {reason}", context)


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
        raise _conflict("search", str(error), given) from None


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
            raise _conflict("split", "the name of a split field must be a text without =", name)
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
                raise _conflict("split", "give NAME=SEPARATOR, as in 'tags=;'", each)
            if name in names:
                raise _conflict("split", f"{name!r} is split twice", each)
            names.add(name)
        return tuple(sorted(given))

    @field_validator("html", mode="after")
    @classmethod
    def _html_once(cls, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if given is not None and not all(map(str.strip, given)):
            raise _conflict("html", "give the name of a field", "")
        return None if given is None else tuple(sorted(set(given)))

    @field_validator("fields", mode="after")
    @classmethod
    def _named_once(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        names = set()
        for declaration in given:
            name, colon, kind = _parts(declaration)
            if not name.strip():
                raise _conflict("fields", "the name is missing", declaration)
            if colon and kind not in get_args(FieldType):
                known = ", ".join(get_args(FieldType))
                reason = f"the type after the last colon must be one of: {known}"
                raise _conflict("fields", reason, declaration)
            if name in names:
                raise _conflict("fields", f"{name!r} is declared twice", declaration)
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
        raise _conflict("passages", reason, given)
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

    operators: bool | None = Field(
        None,
        description='read "phrases", +required, -excluded, field:word and prefix* as '
        "operators: yes, in every query; no, in none; auto, in short and "
        "deliberate queries",
    )
    spelling: SpellingName = Field(
        "auto",
        description="correct query words that no document contains: auto, search for the "
        "nearest known word instead; suggest, only suggest it; or off",
    )
    synonyms: bool = Field(
        True, description="search for synonyms of query words too, if the index has any"
    )
    match: MatchName = Field(
        "any",
        description="return only documents that contain, of the query words that any document "
        "contains: all; most, more than half of their weight; or any, without restriction",
    )


class PageSettings(SettingsGroup):
    """Display of an index on the search page."""

    page_title: str = Field(
        "",
        max_length=100,
        description="show this title on the search page, instead of the name of the index",
    )


_WEIGHTS: Final[Any] = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "additionalProperties": {"type": "number"}},
    ]
}
"""JSON schema of the weights of fields, which may be a text or a mapping."""


def _boosts(given: object) -> str:
    try:
        factors = parse_weights(given)
        for name, factor in factors.items():
            if not MIN_BOOST <= factor <= MAX_BOOST:
                raise ValueError(f"the factor of {name!r} must be from {MIN_BOOST} to {MAX_BOOST}")
    except ValueError as error:
        raise _conflict("boosts", str(error), given) from None
    return write_weights(sorted(each for each in factors.items() if each[1] != 1))


class SearchSettings(SettingsGroup):
    """Defaults for ranking."""

    ranker: Ranker = Field(
        "klsa",
        description=f"rank by {', '.join(get_args(RankerName))}, or by the plug-in of this name",
    )
    alpha: float = Field(
        0.7, ge=0, le=1, description="set the maximum share of the expansion in scores; 0 is BM25"
    )
    hold_back: float = Field(
        0.7,
        ge=0,
        le=1,
        description="reduce alpha by this share if the first document of BM25 contains the "
        "whole query; with c the share it contains, alpha (1 - hold_back c^3); 0 "
        "for a constant alpha",
    )
    z: int = Field(
        20,
        ge=1,
        description="expand the query with this many seed documents",
    )
    sharpness: float = Field(
        5.0,
        ge=1,
        le=100,
        description="set p in (k_q / max)^p, the weight of a seed; 1 in the paper",
    )
    spectral: Spectral = Field(
        "gvsm",
        description="make D with this function of the eigenvalues: "
        f"{', '.join(get_args(SpectralName))}, or the plug-in of this name",
    )
    gamma: float = Field(
        0.3,
        gt=0,
        le=100,
        description="set the parameter of the function, in units of the first eigenvalue",
    )
    head: int = Field(0, ge=0, description="leave this many leading eigenvectors out of D")
    unit_length: bool = Field(True, description="scale every part to length 1 over the seeds")
    coverage: float = Field(
        0.4,
        ge=0,
        le=1,
        description="set the share of coverage: query words in the neighbours of a document",
    )
    latent: float = Field(
        0.2, ge=0, le=1, description="set the share of the cosine in the latent space"
    )
    lexical_sharpness: float = Field(
        8.0, ge=1, le=100, description="set p in (k_q / max)^p, the lexical part; 1 in the paper"
    )

    passage_weight: float = Field(
        1.0,
        ge=0,
        le=100,
        description="add the score of the best passage of a document to its own, times this; 0 "
        "ranks documents by themselves",
    )
    boosts: Annotated[str, BeforeValidator(_boosts), WithJsonSchema(_WEIGHTS)] = Field(
        "",
        description="multiply the weights of searched fields in BM25, as NAME^FACTOR, separated "
        "by commas, each factor from 0.01 to 100; with boosts every document is scored, as with "
        "exact",
    )
    exact: bool = Field(
        False,
        description="score every document exactly: takes seconds at a million documents, and "
        "where the first such query also takes 1.5 GB of memory and keeps it",
    )

    @property
    def boost_factors(self) -> dict[str, float]:
        """Return the factors of boosted fields by name."""
        return parse_weights(self.boosts)

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.spectral == "von-neumann" and self.gamma >= 1:
            raise _conflict("gamma", "the von Neumann kernel needs gamma below 1", self.gamma)
        if self.spectral == "exponential" and self.gamma > 20:
            raise _conflict("gamma", "the exponential kernel needs gamma of at most 20", self.gamma)
        if self.spectral == "squashing" and self.gamma < 1e-4:
            raise _conflict("gamma", "squashing needs gamma of at least 0.0001", self.gamma)
        if self.coverage + self.latent > 1:
            raise _conflict("latent", "coverage and latent add up to more than 1", self.latent)
        return self


def _not_in_every_query(operators: bool | None) -> bool | None:
    if operators:
        raise _conflict(
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
                raise _conflict("boosts", reason, self.boosts)
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
