"""Request and response bodies of mining an index."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from klsa_search.core.parameters import Text, encodable
from klsa_search.mining.classification import Classified
from klsa_search.mining.related_terms import RelatedTerm, StrongTerm
from klsa_search.service.schemas.base import (
    MAX_HITS,
    Answer,
    IndexAnswer,
    Name,
    QueryText,
    RequestModel,
    field_error,
)

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
    Name,
    Field(description="latent for words, vectors:SPACE for vectors, or sum:SPACE for both"),
]
Label = Annotated[str, Field(max_length=MAX_LABEL), AfterValidator(encodable)]


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


class HitAnswer(Answer):
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
    hits: list[HitAnswer]


class RelatedRequest(RequestModel):
    """The parameters of GET /indexes/{name}/terms/{term}/related."""

    k: int = Field(10, ge=1, le=MAX_RELATED, description="maximum number of terms")


class RelatedAnswer(IndexAnswer):
    """The terms most closely related to one."""

    term: str
    related: tuple[RelatedTerm, ...]


class StrongTermsRequest(RequestModel):
    """The parameters of GET /indexes/{name}/documents/{id}/terms."""

    k: int = Field(10, ge=1, le=MAX_STRONG, description="maximum number of terms")


class StrongTermsAnswer(IndexAnswer):
    """The strongest terms of a document."""

    id: str
    terms: tuple[StrongTerm, ...]


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


class ClassifyBody(RequestModel):
    """The body of POST /indexes/{name}/classify."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"labels": {"leak": "engine", "grip": "road"}, "k": 2}]},
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
        kinds = len(set(labels.values()))
        if kinds > MAX_LABELS:
            raise PydanticCustomError(
                "too_many_labels",
                "labels: {kinds} different labels; give at most {most}",
                {"kinds": kinds, "most": MAX_LABELS, "field": "labels"},
            )
        return labels

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if self.ids is not None and self.texts is not None:
            raise PydanticCustomError(
                "two_questions",
                "texts: `ids` are given too; give one of them",
                {"field": "texts"},
            )
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
            raise PydanticCustomError(
                "too_many_scores",
                "{field}: {count} times {kinds} different labels is more than "
                "{most} scores; give at most {fewer}",
                {
                    "count": count,
                    "kinds": kinds,
                    "most": MAX_SCORES,
                    "fewer": MAX_SCORES // kinds,
                    "field": field,
                },
            )
        return self


class ClassifyAnswer(IndexAnswer):
    """Labels with margins."""

    classified: tuple[Classified, ...]
