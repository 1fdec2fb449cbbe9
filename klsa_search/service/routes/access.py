"""Endpoints of access: the session of the search page, users, tenant tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from fastapi import Request, Response
from pydantic import Field, StringConstraints

from klsa_search.errors import InsufficientScope, QueryError, SettingsError
from klsa_search.search.filters.masks import FilterLike
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.index_service import IndexService
from klsa_search.service.keys import Scope, add_key, change_password, read_keys, revoke_key
from klsa_search.service.middleware.auth import Access, SignIn
from klsa_search.service.middleware.clients import address_of
from klsa_search.service.resources import Resources
from klsa_search.service.schemas.base import Answer, Name, RequestModel
from klsa_search.service.schemas.errors import documented
from klsa_search.service.schemas.search_requests import FilterText
from klsa_search.service.signing import (
    MAX_TENANT_LIFETIME,
    Signer,
    begin_session,
    end_session,
    new_tenant_token,
    refuse_other_pages,
)

NewPassword = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=12, max_length=200)
]

router = router_for(*get_args(Scope))
open_router = router_for()
users_router = router_for("users")
search_router = router_for("search")


class SignInBody(RequestModel):
    """The body of POST /sign-in."""

    name: Name = Field(description="name of the user")
    password: str = Field(max_length=200)
    new_password: NewPassword | None = Field(
        None, description="replaces the password, and ends the other sessions of the user"
    )


class SessionAnswer(Answer):
    """The API key or user of the request and what it allows."""

    key: str | None = Field(
        description="name of the API key or user; null if the service has no keys"
    )
    scopes: list[str] = Field(description="what the request may do")
    is_user: bool = Field(description="whether this is a user, who signs in with a password")
    signed_in: bool = Field(description="whether DELETE /session signs out")

    @classmethod
    def of(cls, access: Access, *, signed_in: bool) -> SessionAnswer:
        """Describe the access of a request."""
        scopes = sorted(access.scopes)
        return cls(key=access.key, scopes=scopes, is_user=access.is_user, signed_in=signed_in)


@router.get("/session", summary="Get the session")
async def session(service: Service) -> SessionAnswer:
    """Return the name and the scopes of the API key of the request."""
    return SessionAnswer.of(service.access, signed_in=service.access.by_session)


@router.post("/session", summary="Sign in")
async def sign_in(request: Request, response: Response, service: Service) -> SessionAnswer:
    """Let the search page remember the API key of the request for 14 days, by a signed cookie.

    For the page only: other clients send their key with each request.
    """
    access = service.access
    if access.key is not None:
        if access.key_id is None:
            raise QueryError("cannot sign in without an API key; send it as `X-API-Key`")
        signer: Signer = request.app.state.signer
        begin_session(signer, request, response, access.key_id, access.expires)
    return SessionAnswer.of(access, signed_in=access.key is not None)


@open_router.post(
    "/sign-in", summary="Sign in by name and password", responses=documented(401, 429)
)
async def sign_in_by_name(request: Request, response: Response, body: SignInBody) -> SessionAnswer:
    """Begin a session of a user, as POST /session does for a key.

    It may also change the password, by `new_password`. For the page only. A name and an address
    have ten attempts, and one more every 30 seconds.
    """
    resources: Resources = request.app.state.resources
    if not resources.keys.needed:
        raise QueryError("cannot sign in: the service has neither API keys nor users")
    refuse_other_pages(request)
    request.state.is_change = True  # for the audit log
    attempts: SignIn = request.app.state.sign_in
    attempts.take(body.name, address_of(request.scope))
    user = await resources.heavy.run(partial(attempts.check, body.name, body.password))
    if body.new_password is not None:
        work = partial(change_password, resources.keys.path, user, body.new_password)
        user = await resources.heavy.run(work)
    access = replace(Access.of_key(user), key_id=None, by_session=True)
    request.scope["state"]["access"] = access
    begin_session(request.app.state.signer, request, response, user.id, user.expires)
    return SessionAnswer.of(access, signed_in=True)


@router.delete("/session", summary="Sign out")
async def sign_out(request: Request, response: Response) -> SessionAnswer:
    """Remove the cookie from the browser. Revoke the key to end its sessions in all browsers."""
    end_session(request, response)
    return SessionAnswer(key=None, scopes=[], is_user=False, signed_in=False)


T = TypeVar("T")


class UserBody(RequestModel):
    """The body of POST /users."""

    name: Name = Field(description="name to sign in with, which the audit log has")
    scopes: list[Scope] = Field(
        min_length=1,
        max_length=10,
        description="what the user may do",
        examples=[["search", "write"]],
    )
    indexes: list[Name] | None = Field(
        None, max_length=1000, description="indexes of the user; by default all"
    )


class UserAnswer(Answer):
    """A user."""

    name: str
    scopes: list[str]
    indexes: list[str] | None = Field(description="null for all")
    created: datetime
    expires: datetime | None


class UsersAnswer(Answer):
    """All users, by name."""

    users: list[UserAnswer]


class PasswordAnswer(Answer):
    """The password of a new user."""

    name: str
    password: str = Field(description="it cannot be read again")


@users_router.get("/users", summary="List users")
async def users(service: Service) -> UsersAnswer:
    """Return the users who can sign in by name and password."""
    keys = await _run(service, read_keys)
    by_name = sorted((key for key in keys if key.is_user), key=lambda user: user.name)
    return UsersAnswer(users=[UserAnswer.model_validate(user) for user in by_name])


@users_router.post("/users", summary="Add a user", status_code=201)
async def add(response: Response, body: UserBody, service: Service) -> PasswordAnswer:
    """Add a user, and return its password.

    To give a user another password, delete it and add it again, which ends its sessions.
    """
    response.headers["Cache-Control"] = "no-store"
    password = await _run(
        service, lambda path: add_key(path, body.name, body.scopes, body.indexes, is_user=True)
    )
    return PasswordAnswer(name=body.name, password=password)


@users_router.delete("/users/{name}", summary="Delete a user")
async def delete(name: str, service: Service) -> UsersAnswer:
    """Delete a user, whose sessions end, and return the others."""
    await _run(service, lambda path: revoke_key(path, name, is_user=True))
    return await users(service)


async def _run(service: IndexService, work: Callable[[Path], T]) -> T:
    """Run work on the key file in a thread.

    InsufficientScope for a key that is restricted to some indexes; QueryError.
    """
    service.access.require_all("users")
    path = service.keys.path
    try:
        return await service.heavy.run(partial(work, path))
    except SettingsError as error:
        message = error.message.replace(str(path), path.name)
        raise QueryError(message, field=error.field) from None


MAX_FILTERS = 20  # indexes of a token, at most


class TenantTokenBody(RequestModel):
    """The body of POST /tenant-tokens."""

    filters: dict[Name, FilterText | dict[str, Any]] = Field(
        min_length=1,
        max_length=MAX_FILTERS,
        description="filters by index, as in POST /search; the token is for these indexes only",
        examples=[{"shop": 'tenant = "acme"'}],
    )
    expires_in: int = Field(
        3600,
        ge=1,
        le=int(MAX_TENANT_LIFETIME.total_seconds()),
        description="lifetime of the token in seconds",
    )


class TenantTokenAnswer(Answer):
    """A tenant token."""

    token: str
    expires: datetime


@search_router.post("/tenant-tokens", summary="Create a tenant token", status_code=201)
async def create_tenant_token(
    request: Request, response: Response, body: TenantTokenBody, service: Service
) -> TenantTokenAnswer:
    """Create a token that finds only the documents of its filters, and allows nothing but searches.

    For programs that run at users, such as pages of a shop: send it like an API key. It ends when
    it expires, or when the key it was created with is revoked or expires.
    """
    if service.access.key_id is None:
        raise QueryError(
            "cannot create a tenant token without an API key; create one with `klsa-keys add "
            "NAME` and send it as `Authorization: Bearer KEY`"
        )
    await _check_filters(service, body.filters)
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=body.expires_in)
    response.headers["Cache-Control"] = "no-store"
    signer: Signer = request.app.state.signer
    token = new_tenant_token(signer, service.access.key_id, body.filters, expires)
    return TenantTokenAnswer(token=token, expires=expires)


async def _check_filters(service: IndexService, filters: Mapping[str, FilterLike]) -> None:
    """Raise QueryError unless each filter can be applied to its index, or alias.

    IndexNotFound, InsufficientScope.
    """
    for name, filter_ in filters.items():
        target = service.resolve("search", name) or name
        if not service.access.sees(name):
            raise InsufficientScope(
                f"API key {service.access.key!r} is not valid for the alias `{name}`; name its "
                f"index, `{target}`",
                scope="search",
                field="filters",
            )

        def work(target: str = target, condition: FilterLike = filter_) -> None:
            with service.open_indexes.use(target) as index:
                index.restricted(condition)

        try:
            await service.admission.run(work)
        except QueryError as error:
            raise QueryError(f"index `{name}`: {error.message}", field="filters") from None
