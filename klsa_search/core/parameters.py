"""Parameters and options of a search, declared once for Python, HTTP and the command line.

Types with their limits and descriptions, the options, and the base class of settings. `config.py`
has the defaults of an index, `search.query.query.Query` those of one search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from reprlib import Repr
from typing import Annotated, Any, Final, Literal, Self, TypedDict, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from klsa_search.core.field_weights import FieldWeights, parse_weights, write_weights
from klsa_search.core.plugins import PluginName
from klsa_search.errors import SettingsError

_BRIEF: Final = Repr()
_BRIEF.maxother = _BRIEF.maxstring = 200


@dataclass(frozen=True)
class Shown:
    """Option of a setting on the command line, as far as it does not follow from the declaration.

    option   option; by default --name, and --no-name for a yes or no
    metavar  placeholder of the value
    default  default in words
    """

    option: str | None = None
    metavar: str | None = None
    default: str | None = None


class SettingsGroup(BaseModel):
    """Base class of the groups: immutable, no unknown names, no conversion, finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def checked(cls, options: Mapping[str, Any]) -> Self:
        """Return the group made of a mapping; SettingsError names the first invalid setting."""
        try:
            return cls(**options)
        except ValidationError as error:
            message, field = first_fault(error, cls, "setting")
            raise SettingsError(message, field=field) from None

    @classmethod
    def of(cls, settings: object) -> Self:
        """Return this group of settings that contain it."""
        return cls(**{name: getattr(settings, name) for name in cls.model_fields})


def first_fault(error: ValidationError, model: type[BaseModel], kind: str) -> tuple[str, str]:
    """Return a sentence about the first invalid value of a model, and the name of its field.

    kind  what a field is called, such as "setting"
    """
    first = error.errors(include_url=False)[0]
    if first["type"] == "misfit":
        return first["msg"], first["ctx"]["field"]
    name = str(first["loc"][0]) if first["loc"] else f"{kind}s"
    if first["type"] == "extra_forbidden":
        names = ", ".join(sorted(model.model_fields))
        return f"unknown {kind} {name!r}; the {kind}s are: {names}", name
    value = _BRIEF.repr(first["input"])
    if first["type"] == "string_type":
        return f"{name} = {value} is not a text", name
    return f"{name} = {value}: {first['msg']}", name


RankerName = Literal["klsa", "bm25", "rm3", "rocchio", "lsi", "lsi-cosine"]
"""Names of the built-in rankers."""

RANKER_NAMES: Final = PluginName("ranker", get_args(RankerName))

SpellingName = Literal["auto", "suggest", "off"]
MatchName = Literal["any", "most", "all"]
SpectralName = Literal["truncation", "squashing", "von-neumann", "exponential", "gvsm"]
"""Names of the built-in functions of the spectrum."""

SPECTRAL_NAMES: Final = PluginName("spectral", get_args(SpectralName))

MIN_BOOST = 0.01
MAX_BOOST = 100
"""Limits of the factor of a field in a query."""


def conflict(field: str, reason: str, value: object) -> PydanticCustomError:
    """Return the error of a validator that names the parameter to change."""
    context = {"field": field, "reason": reason, "value": repr(value)}
    return PydanticCustomError("misfit", "{field} = {value}: {reason}", context)


def encodable(text: str) -> str:
    """Raise ValueError for half of a surrogate pair, which JSON can have and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it contains half of a surrogate pair") from error
    return text


Text = Annotated[str, AfterValidator(encodable)]

Operators = Annotated[
    bool | None,
    Field(
        description='read "phrases", +required, -excluded, field:word and prefix* as '
        "operators: yes, in every query; no, in none; auto, in short and "
        "deliberate queries"
    ),
]
Spelling = Annotated[
    SpellingName,
    Field(
        description="correct query words that no document contains: auto, search for the "
        "nearest known word instead; suggest, only suggest it; or off"
    ),
]
Synonyms = Annotated[
    bool, Field(description="search for synonyms of query words too, if the index has any")
]
Match = Annotated[
    MatchName,
    Field(
        description="return only documents that contain, of the query words that any document "
        "contains: all; most, more than half of their weight; or any, without restriction"
    ),
]

Ranker = Annotated[
    str,
    RANKER_NAMES,
    Field(description=f"rank by {', '.join(get_args(RankerName))}, or by the plug-in of this name"),
]
Alpha = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="set the maximum weight of meaning (expansion, coverage and latent) in scores; "
        "0 is BM25",
    ),
]
HoldBack = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="reduce alpha by this share if the first document of BM25 contains the "
        "whole query; with c the share it contains, alpha (1 - hold_back c^3); 0 "
        "for a constant alpha",
    ),
]
Z = Annotated[int, Field(ge=1, description="expand the query with this many seed documents")]
Sharpness = Annotated[
    float,
    Field(
        ge=1,
        le=100,
        description="set p in (k_q / max)^p, the weight of a seed; 1 in the paper",
    ),
]
Spectral = Annotated[
    str,
    SPECTRAL_NAMES,
    Field(
        description="make D with this function of the eigenvalues: "
        f"{', '.join(get_args(SpectralName))}, or the plug-in of this name"
    ),
]
Gamma = Annotated[
    float,
    Field(
        gt=0,
        le=100,
        description="set the parameter of the function, in units of the first eigenvalue",
    ),
]
Head = Annotated[int, Field(ge=0, description="leave this many leading eigenvectors out of D")]
UnitLength = Annotated[bool, Field(description="scale every part to length 1 over the seeds")]
Coverage = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="set the share of coverage: query words in the neighbours of a document",
    ),
]
Latent = Annotated[
    float,
    Field(ge=0, le=1, description="set the share of the cosine in the latent space"),
]
LexicalSharpness = Annotated[
    float,
    Field(
        ge=1,
        le=100,
        description="set p in (k_q / max)^p, the lexical part; 1 in the paper",
    ),
]
PassageWeight = Annotated[
    float,
    Field(
        ge=0,
        le=100,
        description="add the score of the best passage of a document to its own, times this; 0 "
        "ranks documents by themselves",
    ),
]


def _boosts(value: object) -> str:
    try:
        factors = parse_weights(value)
        for name, factor in factors.items():
            if not MIN_BOOST <= factor <= MAX_BOOST:
                raise ValueError(f"the factor of {name!r} must be from {MIN_BOOST} to {MAX_BOOST}")
    except ValueError as error:
        raise conflict("boosts", str(error), value) from None
    return write_weights(sorted(item for item in factors.items() if item[1] != 1))


_BOOSTS: Final = (
    "multiply the weights of searched fields in BM25, as NAME^FACTOR, separated by commas, each "
    "factor from 0.01 to 100; with boosts every document is scored, as with exact"
)
Boosts = Annotated[
    str,
    BeforeValidator(_boosts),
    WithJsonSchema(  # a mapping is valid as well
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "additionalProperties": {"type": "number"}},
            ],
            "description": _BOOSTS,
        }
    ),
    Field(description=_BOOSTS),
]
Exact = Annotated[
    bool,
    Field(
        description="score every document exactly: takes seconds at a million documents, where the "
        "first such query also takes 1.5 GB of memory and keeps it"
    ),
]
Dimensions = Annotated[
    int,
    Field(ge=1, description="use this many eigenvectors, in a query at most those that were built"),
]


SNIPPET: Final = 240
"""Characters of a snippet by default."""

LONGEST_SNIPPET: Final = 10_000
"""Characters of a snippet, at most."""

PrefixName = Literal["last"]
GroupName = Literal["document", "passage"]

MAX_NAMES: Final = 100
"""Fields to sort by, to count or to return, and examples of relevance feedback, at most."""


def _as_tuple(value: object) -> object:
    """Return the items of a list or another iterable as a tuple, and everything else as it is."""
    if isinstance(value, str):
        raise PydanticCustomError("text", "it is a text; give a list")
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return tuple(value)
    return value


Names = Annotated[tuple[Text, ...], BeforeValidator(_as_tuple), Field(max_length=MAX_NAMES)]


class SearchParameters(TypedDict, total=False):
    """Keyword arguments for parsing and ranking a query, to be passed as `**parameters`.

    None means the setting of the index.

    >>> bold: SearchParameters = {"alpha": 0.9, "spelling": "off"}
    >>> index.parameters(**bold).alpha
    0.9
    """

    operators: bool | None
    spelling: SpellingName | None
    synonyms: bool | None
    match: MatchName | None
    ranker: str | None
    alpha: float | None
    hold_back: float | None
    z: int | None
    sharpness: float | None
    spectral: str | None
    gamma: float | None
    head: int | None
    unit_length: bool | None
    coverage: float | None
    latent: float | None
    lexical_sharpness: float | None
    passage_weight: float | None
    boosts: FieldWeights | None
    exact: bool | None
    dimensions: int | None


class RankingParameters(BaseModel):
    """Parameters of parsing and ranking; None means the setting of the index."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    operators: Operators = None
    spelling: Spelling | None = None
    synonyms: Synonyms | None = None
    match: Match | None = None
    ranker: Ranker | None = None
    alpha: Alpha | None = None
    hold_back: HoldBack | None = None
    z: Z | None = None
    sharpness: Sharpness | None = None
    spectral: Spectral | None = None
    gamma: Gamma | None = None
    head: Head | None = None
    unit_length: UnitLength | None = None
    coverage: Coverage | None = None
    latent: Latent | None = None
    lexical_sharpness: LexicalSharpness | None = None
    passage_weight: PassageWeight | None = None
    boosts: Boosts | None = None
    exact: Exact | None = None
    dimensions: Dimensions | None = None

    @property
    def parameters(self) -> SearchParameters:
        """Return the parameters that were passed."""
        names = self.model_fields_set & RankingParameters.model_fields.keys()
        return cast(SearchParameters, {name: getattr(self, name) for name in names})


class MatchOptions(BaseModel):
    """Options of a search that decide which hits it has, in which order and form."""

    filter: Annotated[object, Shown(metavar="FILTER")] = Field(
        None,
        description="keep only documents whose metadata match, as text: year >= 2020 AND kind IN "
        '[a, b]; or as JSON: {"field": "year", ">=": 2020}',
    )
    sort: Annotated[Names, Shown(metavar="FIELD[:desc]")] = Field(
        (), description="sort by this metadata field, as field:asc or field:desc, not by score"
    )
    distinct: Annotated[Text | None, Shown(metavar="FIELD")] = Field(
        None, description="return only the best document of each value of this metadata field"
    )
    min_score: float | None = Field(
        None, description="keep only documents with at least this score"
    )
    positive: Annotated[Names, Shown(metavar="ID")] = Field(
        (), description="move scores towards the document of this ID (relevance feedback)"
    )
    negative: Annotated[Names, Shown(metavar="ID")] = Field(
        (), description="move scores away from the document of this ID (relevance feedback)"
    )
    prefix: PrefixName | None = Field(
        None,
        description="search for completions of the last word too: last, for a search box that "
        "searches while the user types",
    )
    snippet_length: int = Field(
        SNIPPET, ge=1, le=LONGEST_SNIPPET, description="limit snippets to this many characters"
    )
    rules: bool = Field(True, description="apply the rules of the index")
    group: GroupName = Field(
        "document",
        description="return documents, or passages of long documents with their texts; totals, "
        "facets and operators are then those of passages",
    )
    vector: object = Field(
        None,
        description="vector of the query, as {space: numbers}: documents near to it score more, "
        "and match even without a word of the query",
    )


class QueryOptions(MatchOptions):
    """Options of a search: what is found, counted and returned."""

    facets: Annotated[Names, Shown("--facet", "FIELD")] = Field(
        (), description="count the values of this metadata field over all matches"
    )
    disjunctive_facets: Annotated[Names, Shown("--disjunctive-facet", "FIELD")] = Field(
        (),
        description="count the values of this metadata field as if the filter had no condition on "
        "it, for lists in which users tick several values",
    )
    max_facet_values: int = Field(
        100, ge=1, description="return at most this many values of each facet"
    )
    highlight: bool = Field(
        False,
        description="highlight the words of the query in title, snippet and passages of other "
        "searched fields; each is then the passage whose words contribute most to the score",
    )
    quality: bool = Field(
        False,
        description="return how good a match each hit is, from 0 to 1, and whether any is good",
    )
    explain: bool = Field(False, description="explain the score of each hit")
    max_tokens: int | None = Field(
        None,
        ge=1,
        description="with group=passage: return the best passages that fit into this number of "
        "tokens (estimated as a quarter of the bytes), at most k, without repetitions",
    )
    rerank: int | None = Field(
        None, ge=1, description="let the reranker order this many of the first hits"
    )
