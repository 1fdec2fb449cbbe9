"""The routes of aliases: other names of indexes, changed in one step. No arithmetic."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import Field

from klsa_search.service.messages.answers import Answer
from klsa_search.service.messages.requests import Name, RequestModel
from klsa_search.service.serving import Served, requires

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
async def aliases(desk: Served) -> AliasList:
    """List aliases and their indexes."""
    found = desk.aliases().items()
    return AliasList(aliases=[AliasAnswer(name=name, index=index) for name, index in found])


@router.put(
    "/aliases/{name}",
    dependencies=requires("write"),
    summary="Set an alias",
)
async def put_alias(name: str, asked: Annotated[AliasBody, Body()], desk: Served) -> AliasAnswer:
    """Point an alias at an index. The change is atomic: requests use the old index or the new."""
    with desk.writes.place():
        await desk.change_aliases(lambda catalog: catalog.set_alias(name, asked.index))
    return AliasAnswer(name=name, index=asked.index)


@router.delete(
    "/aliases/{name}",
    dependencies=requires("write"),
    summary="Remove an alias",
)
async def delete_alias(name: str, desk: Served) -> AliasList:
    """Remove an alias and list those left; its index is kept."""
    with desk.writes.place():
        await desk.change_aliases(lambda catalog: catalog.remove_alias(name))
    return await aliases(desk)
