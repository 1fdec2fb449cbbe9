"""Endpoint that creates tenant tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from klsa_search.errors import QueryError
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.routes.documents import refuse_other_types
from klsa_search.service.schemas.requests import Name, RequestModel
from klsa_search.service.schemas.responses import Answer
from klsa_search.service.schemas.search_requests import FilterText
from klsa_search.service.tenant_tokens import MAX_LIFETIME, TenantTokens

router = APIRouter(dependencies=requires("search"))

MAX_FILTERS = 20
"""Indexes of a token, at most."""


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
        le=int(MAX_LIFETIME.total_seconds()),
        description="lifetime of the token in seconds",
    )


class TenantTokenAnswer(Answer):
    """A tenant token."""

    token: str
    expires: datetime


@router.post("/tenant-tokens", summary="Create a tenant token", status_code=201)
async def create_tenant_token(
    request: Request,
    response: Response,
    body: TenantTokenBody,
    service: Service,
) -> TenantTokenAnswer:
    """Create a token that finds only the documents of its filters, and allows nothing but searches.

    For programs that run at users, such as pages of a shop: send it like an API key. It ends when
    it expires, or when the key it was created with is revoked or expires.
    """
    refuse_other_types(request, "application/json")
    if service.access.key_id is None:
        raise QueryError(
            "cannot create a tenant token without an API key; create one with `klsa-keys add "
            "NAME` and send it as `Authorization: Bearer KEY`"
        )
    await service.check_filters(body.filters)
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=body.expires_in)
    tokens: TenantTokens = request.app.state.tenant_tokens
    response.headers["Cache-Control"] = "no-store"
    token = tokens.create(service.access.key_id, body.filters, expires)
    return TenantTokenAnswer(token=token, expires=expires)
