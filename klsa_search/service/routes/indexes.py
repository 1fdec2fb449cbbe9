"""Endpoints of aliases, synonyms, the spectrum and refits of indexes."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Body, Request, Response
from pydantic import Field

from klsa_search.errors import QueryError, SettingsError
from klsa_search.search.index import Index
from klsa_search.service.index_service import IndexService, Service, requires
from klsa_search.service.routes.documents import refuse_other_types
from klsa_search.service.schemas.errors import documented
from klsa_search.service.schemas.requests import Name, RequestModel, Text
from klsa_search.service.schemas.responses import Answer, RefitAnswer

router = APIRouter()


class AliasBody(RequestModel):
    """The body of PUT /aliases/{name}."""

    index: Name = Field(description="index to point at")


class AliasAnswer(Answer):
    """One alias."""

    name: str
    index: str = Field(description="index that it points at")


class AliasList(Answer):
    """All aliases."""

    aliases: list[AliasAnswer]


@router.get(
    "/aliases",
    dependencies=requires("search", "write"),
    summary="List aliases",
)
async def aliases(service: Service) -> AliasList:
    """List aliases and their indexes."""
    found = service.aliases().items()
    return AliasList(aliases=[AliasAnswer(name=name, index=index) for name, index in found])


@router.put(
    "/aliases/{name}",
    dependencies=requires("write"),
    summary="Set an alias",
)
async def put_alias(name: str, body: Annotated[AliasBody, Body()], service: Service) -> AliasAnswer:
    """Point an alias at an index. The change is atomic: requests use the old index or the new."""
    with service.writes.slot():
        await service.change_aliases(lambda catalog: catalog.set_alias(name, body.index))
    return AliasAnswer(name=name, index=body.index)


@router.delete(
    "/aliases/{name}",
    dependencies=requires("write"),
    summary="Remove an alias",
)
async def delete_alias(name: str, service: Service) -> AliasList:
    """Remove an alias and list those left; its index is kept."""
    with service.writes.slot():
        await service.change_aliases(lambda catalog: catalog.remove_alias(name))
    return await aliases(service)


class SynonymsBody(RequestModel):
    """The body of PUT /indexes/{name}/synonyms."""

    synonyms: dict[Text, list[Text]] | list[Text] = Field(
        description="synonyms by word, or rules: words that stand for each other, or one way; "
        "at most 10,000 words with 100 synonyms each, of 100 characters",
        examples=[["tv, television", "phone => iphone, galaxy"]],
    )


class SynonymsAnswer(Answer):
    """The synonyms of an index."""

    index: str
    synonyms: dict[str, list[str]] = Field(description="synonyms by word or sequence of words")


class SynonymsSet(Answer):
    """Result of setting synonyms."""

    index: str
    words: int = Field(description="number of words with synonyms")


@router.get(
    "/indexes/{name}/synonyms",
    dependencies=requires("search"),
    summary="List synonyms",
    response_model=SynonymsAnswer,
)
async def synonyms(name: str, service: Service) -> Response:
    """List the synonyms of an index by word."""

    def answer(index: Index) -> SynonymsAnswer:
        given = {word: list(others) for word, others in index.synonyms.items()}
        return SynonymsAnswer(index=index.name, synonyms=given)

    return await service.read(name, answer)


@router.put(
    "/indexes/{name}/synonyms",
    dependencies=requires("write"),
    summary="Set synonyms",
    response_model=SynonymsSet,
)
async def put_synonyms(
    name: str, body: Annotated[SynonymsBody, Body()], service: Service
) -> Response:
    """Replace the synonyms of an index. They take effect on return and survive rebuilds.

    Pass an object with the synonyms of each word, or a list of rules as in Solr and Elasticsearch.
    """
    return await _set(name, body.synonyms, service)


@router.delete(
    "/indexes/{name}/synonyms",
    dependencies=requires("write"),
    summary="Remove all synonyms",
    response_model=SynonymsSet,
)
async def delete_synonyms(name: str, service: Service) -> Response:
    """Remove all synonyms of an index, if there are any."""
    return await _set(name, {}, service)


async def _set(
    name: str, given: dict[str, list[str]] | list[str], service: IndexService
) -> Response:
    def work(index: Index) -> str:
        try:
            index.set_synonyms(given)
        except SettingsError as error:  # here the client is at fault, not the service
            raise QueryError(error.message, field=error.field) from None
        return SynonymsSet(index=index.name, words=len(index.synonyms)).model_dump_json()

    with service.writes.slot():
        return Response(await service.write(name, work), media_type="application/json")


class SpectrumAnswer(Answer):
    """The eigenvalues of the document kernel that were computed."""

    index: str
    generation: str
    eigenvalues: list[float] = Field(description="eigenvalues, largest first")
    explained: list[float] = Field(
        description="cumulative share of the trace, the sum of all eigenvalues"
    )

    @classmethod
    def of(cls, index: Index) -> SpectrumAnswer:
        """Return the spectrum of an index."""
        values = index.arrays.eigenvalues
        captured = index.manifest.spectra["bm25"].captured
        sums = np.cumsum(values)
        shares = sums * (captured / sums[-1]) if len(sums) and sums[-1] else np.zeros(len(sums))
        return cls(
            index=index.name,
            generation=index.generation,
            eigenvalues=values.tolist(),
            explained=shares.tolist(),
        )


class RefitBody(RequestModel):
    """The body of POST /indexes/{name}/refit."""

    settings: dict[Text, bool | int | float | Text] = Field(
        {},
        max_length=20,
        description="search settings to store in the index: alpha, z, ...",
    )


class RefitStatus(Answer):
    """State of a refit."""

    index: str
    refit: RefitAnswer | None = Field(description="last refit since the service started, if any")


@router.get(
    "/indexes/{name}/spectrum",
    dependencies=requires("search"),
    summary="Get the spectrum",
    response_model=SpectrumAnswer,
)
async def spectrum(name: str, service: Service) -> Response:
    """Return the eigenvalues of an index and the share of the trace they explain."""
    return await service.read(name, SpectrumAnswer.of)


@router.get(
    "/indexes/{name}/refit",
    dependencies=requires("write"),
    summary="Get the state of the last refit",
)
async def refit(name: str, service: Service) -> RefitStatus:
    """Return the last refit of an index, automatic or requested. Needs scope write."""
    last = await service.refit(name)
    return RefitStatus(index=name, refit=RefitAnswer.model_validate(last) if last else None)


@router.post(
    "/indexes/{name}/refit",
    dependencies=requires("write"),
    summary="Refit an index",
    status_code=202,
    responses=documented(415),
)
async def begin_refit(
    name: str, request: Request, body: Annotated[RefitBody, Body()], service: Service
) -> RefitStatus:
    """Rebuild an index from its documents in the background, after other refits. Searches continue.

    GET returns the progress. If a refit of the index is running or waiting, no other is started.
    """
    refuse_other_types(request, "application/json")
    begun = await service.refit(name, body.settings)
    return RefitStatus(index=name, refit=RefitAnswer.model_validate(begun))
