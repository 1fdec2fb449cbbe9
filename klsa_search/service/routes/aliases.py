"""Endpoints of aliases, other names of indexes."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from klsa_search.service.dependencies import Service, requires
from klsa_search.service.schemas.requests import Name, RequestModel
from klsa_search.service.schemas.responses import Answer

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


@router.get("/aliases", dependencies=requires("search", "write"), summary="List aliases")
async def aliases(service: Service) -> AliasList:
    """List aliases and their indexes."""
    aliases = service.visible.aliases().items()
    return AliasList(aliases=[AliasAnswer(name=name, index=index) for name, index in aliases])


@router.put("/aliases/{name}", dependencies=requires("write"), summary="Set an alias")
async def put_alias(name: str, body: AliasBody, service: Service) -> AliasAnswer:
    """Point an alias at an index. The change is atomic: requests use the old index or the new."""
    with service.writes.slot():
        await service.change_aliases(lambda catalog: catalog.set_alias(name, body.index))
    return AliasAnswer(name=name, index=body.index)


@router.delete("/aliases/{name}", dependencies=requires("write"), summary="Remove an alias")
async def delete_alias(name: str, service: Service) -> AliasList:
    """Remove an alias and list those left; its index is kept."""
    with service.writes.slot():
        await service.change_aliases(lambda catalog: catalog.remove_alias(name))
    return await aliases(service)
