"""Endpoints of the spectrum and of refits of an index."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Body, Request, Response
from pydantic import Field

from klsa_search.search.index import Index
from klsa_search.service.endpoints.documents import refuse_other_types
from klsa_search.service.messages.answers import Answer, RefitAnswer
from klsa_search.service.messages.failures import documented
from klsa_search.service.messages.requests import RequestModel, Text
from klsa_search.service.serving import Served, requires

router = APIRouter()


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
async def spectrum(name: str, desk: Served) -> Response:
    """Return the eigenvalues of an index and the share of the trace they explain."""
    return await desk.ask(name, SpectrumAnswer.of)


@router.get(
    "/indexes/{name}/refit",
    dependencies=requires("write"),
    summary="Get the state of the last refit",
)
async def refit(name: str, desk: Served) -> RefitStatus:
    """Return the last refit of an index, automatic or requested. Needs scope write."""
    last = await desk.refit(name)
    return RefitStatus(index=name, refit=RefitAnswer.model_validate(last) if last else None)


@router.post(
    "/indexes/{name}/refit",
    dependencies=requires("write"),
    summary="Refit an index",
    status_code=202,
    responses=documented(415),
)
async def begin_refit(
    name: str, request: Request, asked: Annotated[RefitBody, Body()], desk: Served
) -> RefitStatus:
    """Rebuild an index from its documents in the background, after other refits. Searches continue.

    GET returns the progress. If a refit of the index is running or waiting, no other is started.
    """
    refuse_other_types(request, "application/json")
    begun = await desk.refit(name, asked.settings)
    return RefitStatus(index=name, refit=RefitAnswer.model_validate(begun))
