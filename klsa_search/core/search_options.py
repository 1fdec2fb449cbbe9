"""Options of a search, declared once for Python, HTTP and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from klsa_search.core.keywords import SearchParameters
from klsa_search.core.parameters import (
    Alpha,
    Boosts,
    Coverage,
    Dimensions,
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
    Shown,
    Spectral,
    Spelling,
    Synonyms,
    Text,
    UnitLength,
    Z,
)

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

_PARAMETERS: Final = frozenset(SearchParameters.__annotations__)


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
        names = self.model_fields_set & _PARAMETERS
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
        description="count the values of this metadata field as if the filter had no conditions on "
        "it, as for one of which a user may choose several values, joined by OR",
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
