"""A search as it was requested, independent of the state of an index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from klsa_search.core.array_types import DocumentMask
from klsa_search.core.keywords import SearchParameters
from klsa_search.errors import QueryError
from klsa_search.search.budget import CANDIDATES, CountTokens, estimated_tokens
from klsa_search.search.filters.masks import Given
from klsa_search.search.options import GroupName, PrefixName
from klsa_search.search.query.evidence import Answers
from klsa_search.search.snippets import LENGTH
from klsa_search.search.vector_ranking import GivenVector


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """The arguments of `Index.search`, of which those that need no index are checked.

    parameters  those given by name, except `dimensions`
    evidence    of all partitions, by which the query is parsed
    ranks_only  whether it is that of `Index.rank`, which does not look for the document whose ID is
                the query, and does not correct short words
    It can be pickled if `filter`, `mask`, `count_tokens` and `vector` can, and names documents by
    ID only, except in `mask`, which is that of one state.
    """

    query: str
    k: int
    offset: int
    filter: Given | None
    sort: tuple[str, ...]
    facets: tuple[str, ...]
    max_facet_values: int
    distinct: str | None
    min_score: float | None
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    mask: DocumentMask | None
    explain: bool
    highlight: bool
    snippet_length: int
    quality: bool
    prefix: PrefixName | None
    group: GroupName
    max_tokens: int | None
    count_tokens: CountTokens
    rerank: int | None
    rules: bool
    vector: GivenVector | None
    dimensions: int | None
    parameters: SearchParameters
    evidence: Answers = field(default_factory=dict)
    ranks_only: bool = False

    @classmethod
    def of_ranking(
        cls,
        query: str,
        k: int,
        vector: GivenVector | None,
        dimensions: int | None,
        parameters: SearchParameters,
    ) -> QueryRequest:
        """Return the request of a call of `Index.rank`."""
        return cls(
            query=query, k=k, offset=0, filter=None, sort=(), facets=(), max_facet_values=1,
            distinct=None, min_score=None, positive=(), negative=(), mask=None, explain=False,
            highlight=False, snippet_length=LENGTH, quality=False, prefix=None, group="document",
            max_tokens=None, count_tokens=estimated_tokens, rerank=None, rules=False,
            vector=vector, dimensions=dimensions, parameters=parameters, ranks_only=True,
        )  # fmt: skip

    def __post_init__(self) -> None:
        """Refuse unknown values, and options that exclude each other; QueryError."""
        if self.group not in get_args(GroupName):
            raise QueryError(
                f"group = {self.group!r} is unknown; use 'document' or 'passage'", field="group"
            )
        if self.max_tokens is not None and (self.group != "passage" or self.offset):
            raise QueryError(
                "max_tokens: only the first passages can be limited in tokens; use "
                "group = 'passage' without offset",
                field="max_tokens",
            )
        if self.prefix not in (None, "last"):
            raise QueryError(
                f"prefix = {self.prefix!r} is unknown; use 'last' or None", field="prefix"
            )
        if self.group == "passage" and (self.positive or self.negative):
            raise QueryError(
                "group: relevance feedback is by documents; leave the examples out, or use "
                "group = 'document'",
                field="group",
            )
        if self.explain and (self.positive or self.negative):
            raise QueryError(
                "explain: scores moved by positive or negative examples cannot be "
                "split into parts; leave the examples out",
                field="explain",
            )

    @property
    def candidates(self) -> int:
        """Return the number of hits, from `offset` on, of which the results are chosen."""
        return self.k if self.max_tokens is None else max(self.k, CANDIDATES)
