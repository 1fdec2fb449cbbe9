"""The search of an index: in each of its parts, whose answers are merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from klsa_search._native import share_seeds
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.lazy import when_read
from klsa_search.core.parameters import SearchParameters
from klsa_search.errors import EmbedderFailed, PartitionMissing, QueryError
from klsa_search.search.engine.evidence import Answers, SharedAnswers, added
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.models import NOT_EMBEDDED, EmbeddedQuery, embedded_query
from klsa_search.search.pages.assembly import assemble_results, checked_rerank
from klsa_search.search.pages.collectors import collect, count_matches
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.hits import fetch_hits
from klsa_search.search.pages.named_documents import id_rank
from klsa_search.search.pages.planning import QueryPlan, Ranking, plan_search
from klsa_search.search.pages.results import Hit, SearchResults
from klsa_search.search.pages.suggested_filters import Conditions, typed_filters, with_suggestions
from klsa_search.search.parts.merging import PageEntry, by_score, merged_facets, merged_order
from klsa_search.search.parts.part_search import (
    ALL_VALUES,
    PartPage,
    PartPlan,
    PartRequest,
    Seeds,
    explain_document,
)
from klsa_search.search.parts.part_set import PartSearches
from klsa_search.search.parts.reader import Reader
from klsa_search.search.parts.reading import global_doc_ids, masks_of, positions_of, rank_queries
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.search.query.query import Query
from klsa_search.search.rankers import RANKERS
from klsa_search.search.ranking.searcher import SeedCandidates, ranks_with_klsa_engine
from klsa_search.storage.partitions import partition_of


def _refuse_ranker(ranker: str | None, index: str) -> None:
    """Raise QueryError for a ranking that needs all documents in one process."""
    names = [name for name, row in RANKERS.items() if row.adds_up]
    if ranker is not None and ranker not in names:
        raise QueryError(
            f"ranker = {ranker!r}: index `{index}` has partitions, which rank by "
            f"{' and '.join(names)}; choose one of them, or build the index with one partition",
            field="ranker",
        )


def search_parts(reader: Reader, query: Query) -> SearchResults:
    """Return the results of a search in all parts of an index."""
    parts, models = reader.parts, reader.models
    if query.rerank is not None:
        checked_rerank(query.rerank, models.reranker, is_sorted=bool(query.sort))
    if (state := parts.only_state) is not None:
        embed = partial(_embedded, reader, query.query)
        searched, plan = plan_search(state, query, embed=embed)
        top, facets = collect(searched, plan)
        total, hits = top.total, fetch_hits(state, searched, plan, top)
        interpretation = _suggesting(plan, lambda: [typed_filters(state, query)])
    else:
        plan, interpretation, total, facets, hits = _merged(parts.searches(), query, reader)
    return assemble_results(
        plan,
        interpretation,
        total,
        facets,
        hits,
        reranker=models.reranker,
        document_of=reader.document,
    )


def count_documents(reader: Reader, query: Query) -> int:
    """Return the total of a search in all parts of an index.

    Cost: a search without hits, or parsing if all words have to match. Then the ranking does not
    matter: BM25 without passages is the cheapest.
    """
    parts = reader.parts
    if query.match == "all":
        query = query.model_copy(update={"ranker": "bm25", "passage_weight": 0.0})
    state = parts.only_state
    if state is None:
        _, pages = _collected(parts.searches(), PartRequest(query, {}), reader.name)
        return sum(page.total for page in pages if page is not None)
    return count_matches(*plan_search(state, query))


def _merged(
    searches: PartSearches, query: Query, reader: Reader
) -> tuple[QueryPlan, QueryInterpretation, int, Mapping[str, Facet], tuple[Hit, ...]]:
    """Return plan, interpretation, total, facets and hits of a search in several partitions."""
    facets = dict.fromkeys((*query.facets, *([query.distinct] if query.distinct else ())))
    counted = query
    if facets or query.disjunctive_facets:
        counted = query.model_copy(update={"max_facet_values": ALL_VALUES, "facets": tuple(facets)})
    embedded = _embedded(reader, query.query, query.vector)
    plan, pages = _collected(searches, PartRequest(counted, {}, embedded=embedded), reader.name)
    answered = [page for page in pages if page is not None]
    pins = sorted((pin for page in answered for pin in page.pins), key=lambda pin: pin.precedence)
    order = merged_order(pages, query.sort, plan.page, plan.offset + plan.k)
    total = sum(page.total for page in answered)
    facets_of_pages = [page.facets for page in answered]
    if query.distinct is not None:
        (values,) = merged_facets(facets_of_pages, ALL_VALUES, [query.distinct]).values()
        total = len(values.values) + values.missing
    order = order[plan.offset : plan.offset + plan.k]
    hits = _fetched(searches, pages, order, plan.offset)
    names = dict.fromkeys((*query.facets, *query.disjunctive_facets))
    merged = merged_facets(facets_of_pages, query.max_facet_values, names)
    rules = replace(plan.rules, pins=dict(enumerate(pins))) if pins else plan.rules
    interpretation = _suggesting(plan, lambda: [page.typed for page in answered])
    return plan._replace(request=query, rules=rules), interpretation, total, merged, hits


def _suggesting(
    plan: QueryPlan, of_parts: Callable[[], Sequence[Conditions]]
) -> QueryInterpretation:
    """Return an interpretation with the filters that the values of all parts suggest."""
    interpretation = plan.interpretation
    return when_read(QueryInterpretation, lambda: with_suggestions(interpretation, of_parts()))


def rank_parts(
    reader: Reader, queries: Sequence[str], ranking: Ranking
) -> list[tuple[DocIds, Scores]]:
    """Return doc ids and scores of the best documents of all parts for each query, best first.

    Doc ids of several partitions are those of `global_doc_ids`; equal scores are in the order of
    their ordinals.
    """
    parts = reader.parts
    vectors = [NOT_EMBEDDED] * len(queries)
    if has_vectors := ranking.vector is not None or bool(reader.models.embedders):
        vectors = [_embedded(reader, text, ranking.vector) for text in queries]
        if warnings := [warning for vector in vectors for warning in vector.warnings]:
            raise EmbedderFailed(warnings[0], field="embedder")
    if (state := parts.only_state) is not None and not has_vectors:
        return [(top.doc_ids, top.scores) for top in rank_queries(state, queries, ranking)]
    rankings = list[tuple[DocIds, Scores]]()
    for text, vector in zip(queries, vectors, strict=True):
        query = ranking.query(text)
        if state is None:
            request = PartRequest(query, {}, ranks_only=True, embedded=vector)
            rankings.append(_merged_ranking(parts.searches(), request, reader.name))
        else:
            query = query.model_copy(update={"vector": vector.vector})
            top, _ = collect(*plan_search(state, query, ranks_only=True))
            rankings.append((top.doc_ids, top.scores))
    return rankings


def score_parts(reader: Reader, query: str, parameters: SearchParameters) -> Scores:
    """Return the scores of all documents: see `Index.scores`."""
    parts = reader.parts
    if (state := parts.only_state) is not None:
        parsing, chosen = state.parameters.read(parameters)
        return state.searcher.scores(state.query_parser.parse(query, parsing), chosen)
    searches = parts.searches()
    sizes = searches.sizes
    exact: SearchParameters = {**parameters, "exact": True}
    request = Ranking(max(sum(sizes), 1), None, None, exact).query(query)
    part_request = PartRequest(request, {}, ranks_only=True)
    doc_ids, values = _merged_ranking(searches, part_request, reader.name)
    scores = np.zeros(sum(sizes), np.float32)
    scores[positions_of(doc_ids, sizes)] = values
    return scores


def _embedded(
    reader: Reader, query: str, vector: Mapping[str, object] | None = None
) -> EmbeddedQuery:
    """Return the vector of a query, by an embedder if none is given, and what failed."""
    embedders = reader.models.embedders
    if vector is not None or not embedders:
        return EmbeddedQuery(vector, ())
    spaces = reader.parts.facts.manifest.vectors
    return embedded_query(embedders, reader.name, spaces, reader.dimensions, query)


def _merged_ranking(
    searches: PartSearches, request: PartRequest, index: str
) -> tuple[DocIds, Scores]:
    _, pages = _collected(searches, request, index)
    answered = [page for page in pages if page is not None]
    numbers = [number for number, page in enumerate(pages) if page is not None]
    partitions = np.repeat(numbers, [len(page.doc_ids) for page in answered])
    order = by_score(answered)[: request.query.k]
    doc_ids = np.concatenate([page.doc_ids for page in answered])[order]
    scores = np.concatenate([page.scores for page in answered])[order]
    return global_doc_ids(partitions[order], doc_ids), scores


def explain_part(reader: Reader, query: Query, id_: str) -> Explanation:
    """Return the explanation of the score of a document: see `Index.explain`."""
    parts = reader.parts
    if (state := parts.only_state) is not None:
        embed = partial(_embedded, reader, query.query)
        _, plan = plan_search(state, query, embed=embed, ranks_only=True)
        return explain_document(state, plan, id_)
    embedded = _embedded(reader, query.query, query.vector)
    request = PartRequest(query, {}, ranks_only=True, embedded=embedded)
    searches = parts.searches()
    plan, shared = plan_and_seeds(searches, request, reader.name)
    answers: Answers = {}
    has_vector = request.query.vector or request.embedded.vector
    if has_vector or not ranks_with_klsa_engine(plan.parameters):
        answers, _ = _pages(searches, shared)
    partition = partition_of(id_, searches.count)
    explanation = searches.explain(partition, id_, shared[partition], answers)
    if explanation is None:
        raise PartitionMissing(
            f"partition {partition} of index `{reader.name}` does not answer; check that "
            "all machines of the cluster are up"
        )
    return explanation


def _collected(
    searches: PartSearches, request: PartRequest, index: str
) -> tuple[QueryPlan, Sequence[PartPage | None]]:
    _refuse_ranker(request.query.ranker, index)  # planning may need arrays that no partition has
    if (collected := searches.at_once(request)) is not None:
        return collected
    plan, shared = plan_and_seeds(searches, request, index)
    _, pages = _pages(searches, shared)
    return plan, pages


def _pages(
    searches: PartSearches, shared: Sequence[Seeds]
) -> tuple[Answers, Sequence[PartPage | None]]:
    """Return the pages of all partitions, and the answers by which these rank."""
    answers: Answers = {}
    while True:
        pages = searches.collect(shared, answers)
        open_answers = [page.answers for page in pages if page is not None]
        if not any(open_answers):
            return answers, pages
        answers = {**answers, **added(open_answers)}


def plan_and_seeds(
    searches: PartSearches, request: PartRequest, index: str
) -> tuple[QueryPlan, Sequence[Seeds]]:
    """Return the plan of a search, and the seeds of the query as each part needs them."""
    _refuse_ranker(request.query.ranker, index)  # planning may need arrays that no partition has
    begun = _begun(searches, request)
    answers = [plan for plan in begun if plan is not None]
    leading = next((answer for answer in answers if answer.has_id_match), answers[0])
    _refuse_ranker(leading.plan.parameters.ranker, index)
    return leading.plan, _shared(begun, leading.seeds)


def _shared(begun: Sequence[PartPlan | None], kinds: Sequence[SeedCandidates]) -> list[Seeds]:
    """Return the seeds of all partitions as each needs them.

    kinds  candidates of one partition: of documents, then of passages if these count
    """
    shared = [
        share_seeds(
            [None if plan is None else plan.seeds[number].seeds for plan in begun],
            of_kind.params,
            of_kind.step,
        )
        for number, of_kind in enumerate(kinds)
    ]
    return [[seeds[number] for seeds in shared] for number in range(len(begun))]


def _begun(searches: PartSearches, request: PartRequest) -> list[PartPlan | None]:
    """Return the plans of all partitions, each of which parses the query by the evidence of all."""
    answers = searches.answers
    request = request._replace(evidence=answers)
    requests = [request] * searches.count
    if request.query.mask is not None:
        requests = [
            request._replace(query=request.query.model_copy(update={"mask": mask}))
            for mask in masks_of(request.query.mask, searches.sizes)
        ]
    while True:
        begun = list(searches.begin(requests))
        # In each round: that an ID is the only one ending with a number needs all answers.
        ranks = {
            number: id_rank(request.query.query, plan.plan.interpretation.id)
            for number, plan in enumerate(begun)
            if plan is not None and plan.has_id_match
        }
        if ranks:
            # The others rank by the words of the ID, as the partition that has the document does.
            naming = min(ranks, key=ranks.__getitem__)
            others = [
                None if number == naming else part._replace(query_is_id=True)
                for number, part in enumerate(requests)
            ]
            plan, begun = begun[naming], list(searches.begin(others))
            begun[naming] = plan
        if not any(asked := [plan.answers for plan in begun if plan is not None]):
            return begun
        if not (isinstance(answers, SharedAnswers) and answers.merge(asked)):
            answers = {**added(asked), **answers}  # another search may have learned all
        requests = [request._replace(evidence=answers) for request in requests]


def _fetched(
    searches: PartSearches,
    pages: Sequence[PartPage | None],
    order: Sequence[PageEntry],
    offset: int,
) -> tuple[Hit, ...]:
    positions: list[list[int]] = [[] for _ in range(searches.count)]
    for partition, position in order:
        positions[partition].append(position)
    missing = [
        of_page if page is not None and page.hits is None else []
        for of_page, page in zip(positions, pages, strict=True)
    ]
    answers: Sequence[Sequence[Hit] | None] = [None] * searches.count
    if any(missing):
        answers = searches.fetch(missing)
    in_parts = [
        iter([page.hits[at] for at in of_page] if page is not None and page.hits else answer or ())
        for page, of_page, answer in zip(pages, positions, answers, strict=True)
    ]
    hits = [hit for partition, _ in order if (hit := next(in_parts[partition], None)) is not None]
    for rank, hit in enumerate(hits, start=offset + 1):
        hit.rank = rank
    return tuple(hits)
