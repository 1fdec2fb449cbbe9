"""Endpoints of the session of the search page: sign in, sign out, who is signed in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, get_args

from fastapi import APIRouter, Request, Response
from pydantic import Field, StringConstraints

from klsa_search.errors import QueryError
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.keys import Scope, change_password
from klsa_search.service.middleware.auth import Access
from klsa_search.service.middleware.limits import address_of
from klsa_search.service.resources import Resources
from klsa_search.service.routes.documents import refuse_other_types
from klsa_search.service.schemas.errors import documented
from klsa_search.service.schemas.requests import Name, RequestModel
from klsa_search.service.schemas.responses import Answer
from klsa_search.service.sessions import Sessions
from klsa_search.service.sign_in import SignIn

router = APIRouter()

NewPassword = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=12, max_length=200)
]

_ANY: tuple[Scope, ...] = get_args(Scope)


class SignInBody(RequestModel):
    """The body of POST /sign-in."""

    name: Name = Field(description="name of the person")
    password: str = Field(max_length=200)
    new_password: NewPassword | None = Field(
        None, description="replaces the password, and ends the other sessions of the person"
    )


class SessionAnswer(Answer):
    """The API key or person of the request and what it allows."""

    key: str | None = Field(
        description="name of the API key or person; null if the service has no keys"
    )
    scopes: list[str] = Field(description="what the request may do")
    is_person: bool = Field(description="whether this is a person, who signs in with a password")
    signed_in: bool = Field(description="whether DELETE /session signs out")

    @classmethod
    def of(cls, access: Access, *, signed_in: bool) -> SessionAnswer:
        """Describe the access of a request."""
        return cls(
            key=access.key,
            scopes=sorted(access.scopes),
            is_person=access.is_person,
            signed_in=signed_in,
        )


@router.get("/session", dependencies=requires(*_ANY), summary="Get the session")
async def session(service: Service) -> SessionAnswer:
    """Return the name and the scopes of the API key of the request."""
    return SessionAnswer.of(service.access, signed_in=service.access.by_session)


@router.post("/session", dependencies=requires(*_ANY), summary="Sign in")
async def sign_in(request: Request, response: Response, service: Service) -> SessionAnswer:
    """Let the search page remember the API key of the request for 14 days, by a signed cookie.

    For the page only: other clients send their key with each request.
    """
    access = service.access
    if access.key is not None:
        if access.key_id is None:
            raise QueryError("cannot sign in without an API key; send it as `X-API-Key`")
        request.app.state.sessions.begin(request, response, access.key_id, access.expires)
    return SessionAnswer.of(access, signed_in=access.key is not None)


@router.post(
    "/sign-in",
    dependencies=requires(),
    summary="Sign in by name and password",
    responses=documented(401, 429),
)
async def sign_in_by_name(request: Request, response: Response, body: SignInBody) -> SessionAnswer:
    """Begin a session of a person, as POST /session does for a key.

    It may also change the password, by `new_password`. For the page only. A name and an address
    have ten attempts, and one more every 30 seconds.
    """
    refuse_other_types(request, "application/json")
    sessions: Sessions = request.app.state.sessions
    resources: Resources = request.app.state.resources
    if not resources.keys.needed:
        raise QueryError("cannot sign in: the service has neither API keys nor people")
    sessions.refuse_others(request)
    request.state.is_change = True  # for the audit log
    attempts: SignIn = request.app.state.sign_in
    attempts.take(body.name, address_of(request.scope))
    person = await resources.heavy.run(partial(attempts.check, body.name, body.password))
    if body.new_password is not None:
        work = partial(change_password, resources.keys.path, person, body.new_password)
        person = await resources.heavy.run(work)
    access = replace(Access.of_key(person), key_id=None, by_session=True)
    request.scope["state"]["access"] = access
    sessions.begin(request, response, person.id, person.expires)
    return SessionAnswer.of(access, signed_in=True)


@router.delete("/session", dependencies=requires(*_ANY), summary="Sign out")
async def sign_out(request: Request, response: Response) -> SessionAnswer:
    """Remove the cookie from the browser. Revoke the key to end its sessions in all browsers."""
    request.app.state.sessions.end(request, response)
    return SessionAnswer(key=None, scopes=[], is_person=False, signed_in=False)
