"""Endpoints of people, who sign in on the search page by name and password."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import Field

from klsa_search.errors import QueryError, SettingsError
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.index_service import IndexService
from klsa_search.service.keys import Scope, add_key, read_keys, revoke_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.resources import Resources
from klsa_search.service.routes.documents import refuse_other_types
from klsa_search.service.schemas.requests import Name, RequestModel
from klsa_search.service.schemas.responses import Answer

T = TypeVar("T")

router = APIRouter(dependencies=requires("people"))


class PersonBody(RequestModel):
    """The body of POST /people."""

    name: Name = Field(description="name to sign in with, which the audit log has")
    scopes: list[Scope] = Field(
        min_length=1,
        max_length=10,
        description="what the person may do",
        examples=[["search", "write"]],
    )
    indexes: list[Name] | None = Field(
        None, max_length=1000, description="indexes of the person; by default all"
    )


class PersonAnswer(Answer):
    """A person."""

    name: str
    scopes: list[str]
    indexes: list[str] | None = Field(description="null for all")
    created: datetime
    expires: datetime | None


class PeopleAnswer(Answer):
    """All people, by name."""

    people: list[PersonAnswer]


class PasswordAnswer(Answer):
    """The password of a new person."""

    name: str
    password: str = Field(description="it cannot be read again")


@router.get("/people", summary="List people")
async def people(request: Request, service: Service) -> PeopleAnswer:
    """Return the people who can sign in by name and password."""
    keys = await _run(service, request, lambda keys: read_keys(keys.path))
    by_name = sorted((key for key in keys if key.is_person), key=lambda person: person.name)
    return PeopleAnswer(people=[PersonAnswer.model_validate(person) for person in by_name])


@router.post("/people", summary="Add a person", status_code=201)
async def add(
    request: Request, response: Response, body: PersonBody, service: Service
) -> PasswordAnswer:
    """Add a person, and return its password.

    To give a person another password, remove it and add it again, which ends its sessions.
    """
    refuse_other_types(request, "application/json")
    response.headers["Cache-Control"] = "no-store"

    def work(keys: Keys) -> str:
        return add_key(keys.path, body.name, body.scopes, body.indexes, is_person=True)

    return PasswordAnswer(name=body.name, password=await _run(service, request, work))


@router.delete("/people/{name}", summary="Remove a person")
async def remove(request: Request, name: str, service: Service) -> PeopleAnswer:
    """Remove a person, whose sessions end, and return the others."""

    def work(keys: Keys) -> None:
        revoke_key(keys.path, name, is_person=True)

    await _run(service, request, work)
    return await people(request, service)


async def _run(service: IndexService, request: Request, work: Callable[[Keys], T]) -> T:
    """Run work on the key file in a thread.

    InsufficientScope for a key that is restricted to some indexes; QueryError.
    """
    service.access.require_all("people")
    resources: Resources = request.app.state.resources
    keys = resources.keys

    def checked() -> T:
        try:
            return work(keys)
        except SettingsError as error:
            message = error.message.replace(str(keys.path), keys.path.name)
            raise QueryError(message, field=error.field) from None

    return await resources.heavy.run(checked)
