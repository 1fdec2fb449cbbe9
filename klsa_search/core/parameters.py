"""Parameters and options of a search, declared once for Python, HTTP and the command line.

    ParsingSettings    how queries are parsed: settings of an index, which a search may change
    RankingSettings    how documents are ranked, likewise
    SearchParameters   both, as keyword arguments of one search, for type checkers
    RankingParameters  both, as a model of one search: None means the setting of the index
    MatchOptions       other options of a search: which hits it has, in which order and form
    QueryOptions       these, and what is counted and returned

`config.py` has all settings of an index, `search.query.query.Query` a search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Self, TypedDict, TypeVar, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)

from klsa_search.core.field_weights import FieldWeights, parse_weights, write_weights
from klsa_search.core.plugins import PluginName
from klsa_search.core.settings_group import OptionDisplay, SettingsGroup, as_tuple, conflict

M = TypeVar("M", bound=BaseModel)

RankerName = Literal["klsa", "bm25", "rm3", "rocchio", "lsi", "lsi-cosine"]
"""Names of the built-in rankers."""

RANKER_NAMES: Final = PluginName("ranker", get_args(RankerName))
Ranker = Annotated[str, RANKER_NAMES]

SpellingName = Literal["auto", "suggest", "off"]
MatchName = Literal["any", "most", "all"]
SpectralName = Literal["truncation", "squashing", "von-neumann", "exponential", "gvsm"]
"""Names of the built-in functions of the spectrum."""

SPECTRAL_NAMES: Final = PluginName("spectral", get_args(SpectralName))

MIN_BOOST = 0.01
MAX_BOOST = 100  # limits of the factor of a field in a query


def encodable(text: str) -> str:
    """Raise ValueError for half of a surrogate pair, which JSON can have and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it contains half of a surrogate pair") from error
    return text


Text = Annotated[str, AfterValidator(encodable)]


class ParsingSettings(SettingsGroup):
    """Parameters for parsing a query, with the defaults of an index."""

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


def _boosts(value: object) -> str:
    try:
        factors = parse_weights(value)
        for name, factor in factors.items():
            if not MIN_BOOST <= factor <= MAX_BOOST:
                raise ValueError(f"the factor of {name!r} must be from {MIN_BOOST} to {MAX_BOOST}")
    except ValueError as error:
        raise conflict("boosts", str(error), value) from None
    return write_weights(sorted(factors.items()))


_TEXT_OR_MAPPING: Final = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "number"}}]}
)


class RankingSettings(SettingsGroup):
    """Parameters for ranking, with the defaults of an index."""

    ranker: Ranker = Field(
        "klsa",
        description=f"rank by {', '.join(get_args(RankerName))}, or by the plug-in of this name",
    )
    alpha: float = Field(
        0.7,
        ge=0,
        le=1,
        description="set the maximum weight of related documents and words in scores (expansion, "
        "coverage and latent); 0 is BM25",
    )
    hold_back: float = Field(
        0.7,
        ge=0,
        le=1,
        description="reduce alpha by this share if the first document of BM25 contains the "
        "whole query; with c the share it contains, alpha (1 - hold_back c^3); 0 "
        "for a constant alpha",
    )
    z: int = Field(20, ge=1, description="expand the query with this many seed documents")
    sharpness: float = Field(
        5.0,
        ge=1,
        le=100,
        description="set p in (k_q / max)^p, the weight of a seed; 1 in the paper",
    )
    spectral: Annotated[str, SPECTRAL_NAMES] = Field(
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
    boosts: Annotated[str, BeforeValidator(_boosts), _TEXT_OR_MAPPING] = Field(
        "",
        description="multiply the weights of searched fields in BM25, as NAME^FACTOR, separated by "
        "commas, each factor from 0.01 to 100; with boosts every document is scored, as with exact",
    )
    exact: bool = Field(
        False,
        description="score every document exactly: takes seconds at a million documents, where the "
        "first such query also takes 1.5 GB of memory and keeps it",
    )
    dimensions: int = Field(
        300,
        ge=1,
        description="use this many eigenvectors, in a query at most those that were built",
    )

    @property
    def boost_factors(self) -> dict[str, float]:
        """Return the factors other than 1 of boosted fields, by name."""
        if not self.boosts:  # of nearly all queries
            return {}
        return {name: factor for name, factor in parse_weights(self.boosts).items() if factor != 1}

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


SNIPPET: Final = 240  # characters of a snippet by default
LONGEST_SNIPPET: Final = 10_000  # characters of a snippet, at most
PrefixName = Literal["last"]
GroupName = Literal["document", "passage"]

MAX_NAMES: Final = 100
"""Fields to sort by, to count or to return, and examples of relevance feedback, at most."""


Names = Annotated[tuple[Text, ...], BeforeValidator(as_tuple), Field(max_length=MAX_NAMES)]


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


def _optional(*groups: type[SettingsGroup]) -> Callable[[type[M]], type[M]]:
    """Return a decorator that gives fields the limits and descriptions of settings, or None."""
    fields = {name: field for group in groups for name, field in group.model_fields.items()}

    def complete(model: type[M]) -> type[M]:
        types: dict[str, Any] = {
            name: (field.rebuild_annotation() | None, Field(None, description=field.description))
            for name, field in fields.items()
        }
        return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **types)

    return complete


@_optional(ParsingSettings, RankingSettings)
class RankingParameters(BaseModel):
    """Parameters of parsing and ranking; None means the setting of the index."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    operators: bool | None = None
    spelling: SpellingName | None = None
    synonyms: bool | None = None
    match: MatchName | None = None
    ranker: str | None = None
    alpha: float | None = None
    hold_back: float | None = None
    z: int | None = None
    sharpness: float | None = None
    spectral: str | None = None
    gamma: float | None = None
    head: int | None = None
    unit_length: bool | None = None
    coverage: float | None = None
    latent: float | None = None
    lexical_sharpness: float | None = None
    passage_weight: float | None = None
    boosts: str | None = None
    exact: bool | None = None
    dimensions: int | None = None

    @property
    def parameters(self) -> SearchParameters:
        """Return the parameters that were passed."""
        names = self.model_fields_set & _PARAMETERS
        return cast(SearchParameters, {name: getattr(self, name) for name in names})


_PARAMETERS: Final = frozenset(RankingParameters.model_fields)


class MatchOptions(BaseModel):
    """Options of a search that decide which hits it has, in which order and form."""

    filter: Annotated[object, OptionDisplay(metavar="FILTER")] = Field(
        None,
        description="keep only documents whose metadata match, as text: year >= 2020 AND kind IN "
        '[a, b]; or as JSON: {"field": "year", ">=": 2020}',
    )
    sort: Annotated[Names, OptionDisplay(metavar="FIELD[:desc]")] = Field(
        (), description="sort by this metadata field, as field:asc or field:desc, not by score"
    )
    distinct: Annotated[Text | None, OptionDisplay(metavar="FIELD")] = Field(
        None, description="return only the best document of each value of this metadata field"
    )
    min_score: float | None = Field(
        None, description="keep only documents with at least this score"
    )
    positive: Annotated[Names, OptionDisplay(metavar="ID")] = Field(
        (), description="move scores towards the document of this ID (relevance feedback)"
    )
    negative: Annotated[Names, OptionDisplay(metavar="ID")] = Field(
        (), description="move scores away from the document of this ID (relevance feedback)"
    )
    prefix: PrefixName | None = Field(
        None,
        description="complete the last word (last), for a search box that searches while the user "
        "types",
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

    facets: Annotated[Names, OptionDisplay("--facet", "FIELD")] = Field(
        (), description="count the values of this metadata field over all matches"
    )
    disjunctive_facets: Annotated[Names, OptionDisplay("--disjunctive-facet", "FIELD")] = Field(
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
