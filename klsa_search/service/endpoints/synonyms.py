"""Endpoints of the synonyms of an index. No arithmetic."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response
from pydantic import Field

from klsa_search.errors import QueryError, SettingsError
from klsa_search.search.index import Index
from klsa_search.service.messages.answers import Answer
from klsa_search.service.messages.requests import RequestModel, Text
from klsa_search.service.serving import Desk, Served, requires

router = APIRouter()


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
async def synonyms(name: str, desk: Served) -> Response:
    """List the synonyms of an index by word."""

    def answer(index: Index) -> SynonymsAnswer:
        given = {word: list(others) for word, others in index.synonyms.items()}
        return SynonymsAnswer(index=index.name, synonyms=given)

    return await desk.ask(name, answer)


@router.put(
    "/indexes/{name}/synonyms",
    dependencies=requires("write"),
    summary="Set synonyms",
    response_model=SynonymsSet,
)
async def put_synonyms(name: str, asked: Annotated[SynonymsBody, Body()], desk: Served) -> Response:
    """Replace the synonyms of an index. They take effect on return and survive rebuilds.

    Pass an object with the synonyms of each word, or a list of rules as in Solr and Elasticsearch.
    """
    return await _set(name, asked.synonyms, desk)


@router.delete(
    "/indexes/{name}/synonyms",
    dependencies=requires("write"),
    summary="Remove all synonyms",
    response_model=SynonymsSet,
)
async def delete_synonyms(name: str, desk: Served) -> Response:
    """Remove all synonyms of an index, if there are any."""
    return await _set(name, {}, desk)


async def _set(name: str, given: dict[str, list[str]] | list[str], desk: Desk) -> Response:
    def work(index: Index) -> str:
        try:
            index.set_synonyms(given)
        except SettingsError as error:  # a slip of who asks, not of who serves
            raise QueryError(error.message, field=error.field) from None
        return SynonymsSet(index=index.name, words=len(index.synonyms)).model_dump_json()

    with desk.writes.place():
        return Response(await desk.write(name, work), media_type="application/json")
