"""Endpoints of similar documents, terms of documents and texts, maps, classes and the spectrum."""

from __future__ import annotations

from typing import Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from klsa_search.core.parameters import Text, encodable
from klsa_search.mining.classification import Classification, classify, classify_texts
from klsa_search.mining.map import document_map
from klsa_search.mining.related_terms import RelatedTerm, StrongTerm, related, strongest_terms
from klsa_search.mining.similar import similar
from klsa_search.search.index import Index
from klsa_search.service.dependencies import reading, router_for
from klsa_search.service.schemas.base import (
    MAX_HITS,
    Answer,
    IndexAnswer,
    Name,
    QueryText,
    RequestModel,
    field_error,
)

router = router_for("search")
tenant_router = router_for("search", tenants=True)

MAX_RELATED = 100  # each reads five documents for the spelling of the term
MAX_STRONG = 1_000  # terms of a document
MAX_LABELLED = 10_000
MAX_LABELS = 100
MAX_LABEL = 100  # characters; each score repeats its label
MAX_CLASSIFIED = 10_000
MAX_TEXTS = 1_000
MAX_SCORES = 100_000  # labels times documents or texts

# Checked later: the names of spaces depend on the index.
SpaceKernel = Annotated[
    Name, Field(description="latent for words, vectors:SPACE for vectors, or sum:SPACE for both")
]
Label = Annotated[str, Field(max_length=MAX_LABEL), AfterValidator(encodable)]

_SPAN = 65_535  # largest coordinate of a map: two bytes


class SimilarRequest(RequestModel):
    """The parameters of GET /indexes/{name}/documents/{id}/similar."""

    k: int = Field(10, ge=1, le=MAX_HITS, description="maximum number of documents")
    kernel: Name = Field(
        "latent",
        description="latent for the same subject, document for shared words, vectors:SPACE for "
        "the cosine of vectors, sum:SPACE for the sum of it and latent, or a function of the "
        "spectrum of the document kernel, also of a plug-in",
    )
    gamma: float | None = Field(None, gt=0, le=100, description="gamma of that function")


class SimilarHit(Answer):
    """One similar document."""

    rank: int = Field(description="rank from 1")
    id: str
    score: float
    title: str
    snippet: str
    metadata: dict[str, Any]


class SimilarAnswer(IndexAnswer):
    """The documents most similar to one."""

    id: str
    kernel: str
    hits: list[SimilarHit]


@tenant_router.get("/indexes/{name}/documents/{id:whole}/similar", summary="Find similar documents")
@reading(heavy=True)
def similar_documents(index: Index, id: str, params: SimilarRequest) -> SimilarAnswer:
    """Return the documents most similar to one; scores are relative to its own."""
    hits = similar(index, id, params.k, kernel=params.kernel, gamma=params.gamma)
    return SimilarAnswer(
        id=id, kernel=params.kernel, hits=[SimilarHit.model_validate(hit) for hit in hits]
    )


class StrongTermsRequest(RequestModel):
    """The parameters of GET /indexes/{name}/documents/{id}/terms."""

    k: int = Field(10, ge=1, le=MAX_STRONG, description="maximum number of terms")


class StrongTermsAnswer(IndexAnswer):
    """The strongest terms of a document."""

    id: str
    terms: tuple[StrongTerm, ...]


@tenant_router.get(
    "/indexes/{name}/documents/{id:whole}/terms", summary="Get the strongest terms of a document"
)
@reading(heavy=True)
def terms_of_document(index: Index, id: str, params: StrongTermsRequest) -> StrongTermsAnswer:
    """Return the terms of a document that weigh most in BM25, strongest first."""
    return StrongTermsAnswer(id=id, terms=strongest_terms(index, id, params.k))


class AnalyzeBody(RequestModel):
    """The body of POST /indexes/{name}/analyze."""

    text: QueryText = Field(description="text to analyse")


class TokenAnswer(Answer):
    """One term and its place."""

    term: str
    position: int = Field(description="position from 0; removed words are counted")
    start: int = Field(description="offset of its first character in the text")
    end: int = Field(description="offset after its last character")


class AnalyzeAnswer(Answer):
    """The terms of a text, in order."""

    index: str
    generation: str
    tokens: list[TokenAnswer]


@tenant_router.post("/indexes/{name}/analyze", summary="Analyse a text")
@reading(heavy=True)
def analyze(index: Index, body: AnalyzeBody) -> AnalyzeAnswer:
    """Return the terms that a text is indexed under, with their positions."""
    tokens = map(TokenAnswer.model_validate, index.analyzer.tokens(body.text))
    return AnalyzeAnswer(index=index.name, generation=index.generation, tokens=list(tokens))


class RelatedRequest(RequestModel):
    """The parameters of GET /indexes/{name}/terms/{term}/related."""

    k: int = Field(10, ge=1, le=MAX_RELATED, description="maximum number of terms")


class RelatedAnswer(IndexAnswer):
    """The terms most closely related to one."""

    term: str
    related: tuple[RelatedTerm, ...]


@router.get("/indexes/{name}/terms/{term:whole}/related", summary="Find related terms")
@reading(heavy=True)
def related_terms(index: Index, term: str, params: RelatedRequest) -> RelatedAnswer:
    """Return the terms most related to one or several words, as learned from the documents."""
    return RelatedAnswer(term=term, related=related(index, term, params.k))


class MapRequest(RequestModel):
    """The parameters of GET /indexes/{name}/map."""

    kernel: SpaceKernel = "latent"


class MapBody(MapRequest):
    """The body of POST /indexes/{name}/map."""

    ids: list[Text] = Field(max_length=MAX_HITS, description="IDs of the documents to place")


class MapClusterAnswer(Answer):
    """One cluster on the map."""

    words: list[str] = Field(
        description="words that weigh more in it than elsewhere, strongest first"
    )
    size: int = Field(description="number of documents in it, on the map or not")
    x: int = Field(description="x of its densest point")
    y: int
    tone: int = Field(description="colour number, from 0 to 7")


class MapAnswer(IndexAnswer):
    """A map of an index in two dimensions, as parallel lists with one entry a document."""

    documents: int = Field(
        description="number of documents; at most 25,000 of them, evenly chosen, are drawn"
    )
    unplaced: int = Field(description="number of documents without a position, which are not drawn")
    clusters: list[MapClusterAnswer] = Field(description="clusters, largest first")
    ids: list[str] = Field(description="IDs of the drawn documents")
    x: list[int] = Field(description="x of each, from 0 to 65,535")
    y: list[int] = Field(description="y of each, from 0 to 65,535, upwards")
    cluster: list[int] = Field(description="index into `clusters` of each, from 0")


@router.get("/indexes/{name}/map", summary="Get the map of documents")
@reading(heavy=True)
def map_of_documents(index: Index, params: MapRequest) -> MapAnswer:
    """Return a map of the documents in two dimensions, similar ones near each other, and their
    clusters. The first request computes it, which takes seconds for 20,000 documents.
    """
    return _mapped(index, kernel=params.kernel)


@router.post("/indexes/{name}/map", summary="Get positions on the map")
@reading(heavy=True)
def map_of_some(index: Index, body: MapBody) -> MapAnswer:
    """Return the positions of given documents, also of those that the map of a large index leaves
    out. `clusters` is empty; `cluster` refers to the clusters of the map.
    """
    return _mapped(index, kernel=body.kernel, ids=body.ids)


def _mapped(index: Index, *, kernel: str, ids: list[str] | None = None) -> MapAnswer:
    drawn = document_map(index, ids=ids, kernel=kernel)
    x, y = drawn.as_integers(_SPAN).T.tolist()
    return MapAnswer(
        documents=drawn.documents,
        unplaced=drawn.unplaced,
        clusters=[
            MapClusterAnswer(
                words=list(one.words),
                size=one.size,
                x=round(_SPAN * one.x),
                y=round(_SPAN * one.y),
                tone=one.tone,
            )
            for one in drawn.clusters
        ],
        ids=index.ids(drawn.doc_ids),
        x=x,
        y=y,
        cluster=drawn.cluster.tolist(),
    )


class ClassifyBody(RequestModel):
    """The body of POST /indexes/{name}/classify."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"labels": {"leak": "engine", "grip": "road"}, "k": 2}]}
    )

    labels: dict[Text, Label] = Field(
        max_length=MAX_LABELLED,
        description="labels of some documents by ID; 2 to 100 distinct labels, each of at "
        "most 100 characters",
    )
    ids: list[Text] | None = Field(
        None,
        max_length=MAX_CLASSIFIED,
        description="IDs of documents to label; answered in this order",
    )
    texts: list[QueryText] | None = Field(
        None, max_length=MAX_TEXTS, description="texts to label, answered in this order"
    )
    k: int = Field(
        100,
        ge=1,
        le=MAX_CLASSIFIED,
        description="number of most certain results, if neither ids nor texts are given",
    )
    kernel: SpaceKernel = "latent"

    @field_validator("labels")
    @classmethod
    def _few(cls, labels: dict[str, str]) -> dict[str, str]:
        if (kinds := len(set(labels.values()))) > MAX_LABELS:
            message = f"labels: {kinds} different labels; give at most {MAX_LABELS}"
            raise field_error("labels", message)
        return labels

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if self.ids is not None and self.texts is not None:
            raise field_error("texts", "texts: `ids` are given too; give one of them")
        if self.texts is not None and self.kernel != "latent":
            raise field_error(
                "kernel",
                "kernel: texts are classified by their words only; leave it out or give `ids`",
            )
        field, count = "k", self.k
        if self.ids is not None:
            field, count = "ids", len(self.ids)
        elif self.texts is not None:
            field, count = "texts", len(self.texts)
        kinds = len(set(self.labels.values()))
        if count * kinds > MAX_SCORES:
            message = (
                f"{field}: {count} times {kinds} different labels is more than {MAX_SCORES} scores"
            )
            raise field_error(field, f"{message}; give at most {MAX_SCORES // kinds}")
        return self


class ClassifyAnswer(IndexAnswer):
    """Labels with margins."""

    classified: tuple[Classification, ...]


@router.post("/indexes/{name}/classify", summary="Classify by examples")
@reading(heavy=True)
def classify_documents(index: Index, body: ClassifyBody) -> ClassifyAnswer:
    """Label documents, texts or all other documents, given a few labelled documents."""
    if body.texts is not None:
        classified = classify_texts(index, body.labels, body.texts)
    else:
        most = body.k if body.ids is None else None
        classified = classify(index, body.labels, body.ids, k=most, kernel=body.kernel)
    return ClassifyAnswer(classified=classified)


class SpectrumAnswer(Answer):
    """The eigenvalues of the document kernel that were computed."""

    index: str
    generation: str
    eigenvalues: list[float] = Field(description="eigenvalues, largest first")
    explained: list[float] = Field(
        description="cumulative share of the trace, the sum of all eigenvalues"
    )


@router.get("/indexes/{name}/spectrum", summary="Get the spectrum")
@reading()
def spectrum(index: Index) -> SpectrumAnswer:
    """Return the eigenvalues of an index and the share of the trace they explain."""
    values = index.arrays.eigenvalues
    captured = index.manifest.spectra["bm25"].captured
    sums = np.cumsum(values)
    shares = sums * (captured / sums[-1]) if len(sums) and sums[-1] else np.zeros(len(sums))
    return SpectrumAnswer(
        index=index.name,
        generation=index.generation,
        eigenvalues=values.tolist(),
        explained=shares.tolist(),
    )
