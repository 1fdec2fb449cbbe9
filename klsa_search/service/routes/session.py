"""Endpoints of the session of the search page: sign in, sign out, who is signed in."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import Field

from klsa_search.errors import QueryError
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.index_service import IndexService
from klsa_search.service.keys import Scope
from klsa_search.service.schemas.responses import Answer

router = APIRouter()

_ANY: tuple[Scope, ...] = ("search", "write", "metrics")


class SessionAnswer(Answer):
    """The API key of the request and what it allows."""

    key: str | None = Field(description="name of the API key; null if the service has no keys")
    scopes: list[str] = Field(description="what the request may do")
    signed_in: bool = Field(description="whether DELETE /session signs out")

    @classmethod
    def of(cls, service: IndexService, *, signed_in: bool) -> SessionAnswer:
        """Describe the access of a request."""
        access = service.access
        return cls(key=access.key, scopes=sorted(access.scopes), signed_in=signed_in)


@router.get("/session", dependencies=requires(*_ANY), summary="Get the session")
async def session(service: Service) -> SessionAnswer:
    """Return the name and the scopes of the API key of the request."""
    return SessionAnswer.of(service, signed_in=service.access.by_session)


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
    return SessionAnswer.of(service, signed_in=access.key is not None)


@router.delete("/session", dependencies=requires(*_ANY), summary="Sign out")
async def sign_out(request: Request, response: Response) -> SessionAnswer:
    """Remove the cookie from the browser. Revoke the key to end its sessions in all browsers."""
    if request.app.state.sessions is not None:
        request.app.state.sessions.end(request, response)
    return SessionAnswer(key=None, scopes=[], signed_in=False)
