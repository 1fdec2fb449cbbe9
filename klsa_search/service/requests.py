"""What a request may ask for: the types are the contract, the limits and the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from klsa_search.config import RankerName, SpectralName

KernelName = Literal["latent", "document"] | SpectralName

# No request may take more than about a second of an index like Reuters-21578, and whatever it asks
# for, `size.MAX_ANSWER` holds.
MAX_HITS = 1_000
MAX_RELATED = 100  # to show how a term is written, five documents are read
MAX_QUERY = 10_000
MAX_SEEDS = 1_000_000
MAX_DIMENSIONS = 100_000
MAX_NAME = 100
MAX_LABELLED = 10_000
MAX_LABELS = 100
MAX_LABEL = 100  # characters, which each score has with it
MAX_CLASSIFIED = 10_000
MAX_TEXTS = 1_000
MAX_SCORES = 100_000  # one of each label for each document or text


def _encodable(text: str) -> str:
    """Refuse half of a surrogate pair, which JSON can spell and UTF-8 cannot carry back."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it holds half of a surrogate pair") from error
    return text


Text = Annotated[str, AfterValidator(_encodable)]
Label = Annotated[str, Field(max_length=MAX_LABEL), AfterValidator(_encodable)]
IndexName = Annotated[
    Text, Field(max_length=MAX_NAME, description="may be left out when one index is served")
]


class Asked(BaseModel):
    """Base of what a request asks for: a name nobody knows is an error, not a silence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        names = given if isinstance(given, Mapping) else {}
        for name in names:
            if name not in cls.model_fields:
                raise PydanticCustomError(
                    "unknown_parameter",
                    "there is no parameter {name}; the parameters are: {known}",
                    {
                        "name": repr(name),
                        "known": ", ".join(cls.model_fields),
                        "field": str(name).encode(errors="backslashreplace").decode(),
                    },
                )
        return given


class DocumentRequest(Asked):
    """The parameters of GET /documents/{id}."""

    index: IndexName | None = None


class SearchRequest(Asked):
    """The parameters of GET /search. What is left out is as the index was built."""

    q: Text = Field(max_length=MAX_QUERY, description="the query, in plain words")
    index: IndexName | None = None
    k: int = Field(10, ge=1, le=MAX_HITS, description="hits wanted")
    ranker: RankerName | None = None
    alpha: float | None = Field(
        None, ge=0, le=1, allow_inf_nan=False, description="share of the expansion; 0 is BM25"
    )
    hold_back: float | None = Field(
        None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="share of alpha held back where BM25's first document holds the whole query",
    )
    z: int | None = Field(None, ge=1, le=MAX_SEEDS, description="documents that seed the expansion")
    sharpness: float | None = Field(
        None, ge=1, le=100, allow_inf_nan=False, description="power of a seed's weight"
    )
    spectral: SpectralName | None = Field(None, description="function of the eigenvalues")
    gamma: float | None = Field(
        None, gt=0, le=100, allow_inf_nan=False, description="its parameter"
    )
    head: int | None = Field(
        None, ge=0, le=MAX_DIMENSIONS, description="leading eigenvectors left out"
    )
    unit_length: bool | None = Field(
        None, description="scale every part to length 1 over the seeds"
    )
    coverage: float | None = Field(
        None, ge=0, le=1, allow_inf_nan=False, description="share of coverage by neighbours"
    )
    latent: float | None = Field(
        None, ge=0, le=1, allow_inf_nan=False, description="share of the latent cosine"
    )
    lexical_sharpness: float | None = Field(
        None, ge=1, le=100, allow_inf_nan=False, description="power of the lexical part"
    )
    exact: bool | None = Field(
        None,
        description="score every document in full, also in a large index: seconds at a million "
        "documents, where the first such query also takes 1.5 GB of memory and keeps it",
    )
    dimensions: int | None = Field(
        None, ge=1, le=MAX_DIMENSIONS, description="eigenvectors to use, up to those built"
    )

    def parameters(self) -> dict[str, Any]:
        """Tell how to rank, apart from what is asked and how much of it."""
        return self.model_dump(exclude={"q", "index", "k"}, exclude_none=True)


class SearchBody(SearchRequest):
    """The same as a JSON object, where a number is a number: "10" and true are not."""

    model_config = ConfigDict(strict=True)


class SimilarRequest(Asked):
    """The parameters of GET /indexes/{name}/documents/{id}/similar."""

    k: int = Field(10, ge=1, le=MAX_HITS, description="documents wanted")
    kernel: KernelName = Field(
        "latent",
        description="latent for the same subject, document for shared words, or a function of the "
        "eigenvalues",
    )
    gamma: float | None = Field(
        None, gt=0, le=100, allow_inf_nan=False, description="parameter of that function"
    )


class RelatedRequest(Asked):
    """The parameters of GET /indexes/{name}/terms/{term}/related."""

    k: int = Field(10, ge=1, le=MAX_RELATED, description="terms wanted")


class ClassifyBody(Asked):
    """The body of POST /indexes/{name}/classify."""

    model_config = ConfigDict(strict=True)

    labels: dict[Text, Label] = Field(
        max_length=MAX_LABELLED,
        description="labels of some documents by id; 2 to 100 different ones, of at most 100 "
        "characters; times what is to be labelled at most 100,000",
    )
    ids: list[Text] | None = Field(
        None, max_length=MAX_CLASSIFIED, description="documents to label, answered in this order"
    )
    texts: list[Annotated[Text, Field(max_length=MAX_QUERY)]] | None = Field(
        None, max_length=MAX_TEXTS, description="texts to label, answered in this order"
    )
    k: int = Field(
        100,
        ge=1,
        le=MAX_CLASSIFIED,
        description="without ids and texts, the surest of all the rest",
    )

    @field_validator("labels")
    @classmethod
    def _few(cls, labels: dict[str, str]) -> dict[str, str]:
        kinds = len(set(labels.values()))
        if kinds > MAX_LABELS:
            raise PydanticCustomError(
                "too_many_labels",
                "labels: there are {kinds} different ones; give at most {most}",
                {"kinds": kinds, "most": MAX_LABELS, "field": "labels"},
            )
        return labels

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if self.ids is not None and self.texts is not None:
            raise PydanticCustomError(
                "two_questions",
                "texts: ids are given as well; ask for one of them at a time",
                {"field": "texts"},
            )
        field, asked = "k", self.k
        if self.ids is not None:
            field, asked = "ids", len(self.ids)
        elif self.texts is not None:
            field, asked = "texts", len(self.texts)
        kinds = len(set(self.labels.values()))
        if asked * kinds > MAX_SCORES:
            raise PydanticCustomError(
                "too_many_scores",
                "{field}: {asked} times {kinds} different labels is more than {most} scores; "
                "ask for at most {fewer}",
                {
                    "asked": asked,
                    "kinds": kinds,
                    "most": MAX_SCORES,
                    "fewer": MAX_SCORES // kinds,
                    "field": field,
                },
            )
        return self
