"""Tenant tokens: short-lived access of one tenant to the documents of its filters.

A token names the key it was created with, and the filter of each index that it is for. The service
signs it, because it has only hashes of keys; nothing is stored. Revoking the key ends its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from klsa_search.errors import InvalidApiKey, QueryError
from klsa_search.search.filters.conditions import truth_of
from klsa_search.search.filters.masks import FilterLike, filter_of
from klsa_search.service.signing import Signer

MAX_LIFETIME: Final = timedelta(days=1)
"""Lifetime of a token, at most: until it ends, only revoking its key does."""

MAX_LENGTH: Final = 8_000
"""Characters of a token: proxies refuse longer headers."""


class TenantClaims(BaseModel):
    """Content of a token: ID of the key, and filters by index, as text or JSON."""

    key: str
    filters: dict[str, str | dict[str, Any]]


class TenantTokens:
    """Creates and verifies the tenant tokens of a service."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    def create(self, key_id: str, filters: Mapping[str, FilterLike], expires: datetime) -> str:
        """Return a token; everyone who has it can read its filters.

        QueryError for an invalid filter, one that matches every document whatever it contains, or
        if they are too long.
        """
        for name, filter_ in filters.items():
            if isinstance(filter_, str) and not filter_.strip():
                raise QueryError(
                    f"the filter of index `{name}` is blank; give a filter", field="filters"
                )
            try:
                matches_all = truth_of(filter_of(filter_))
            except QueryError as error:
                raise QueryError(f"index `{name}`: {error.message}", field="filters") from None
            if matches_all:
                raise QueryError(
                    f"the filter of index `{name}` matches every document, as a list in it is "
                    "empty; give a filter that names the tenant, or send an API key instead",
                    field="filters",
                )
        token = self._signer.sign("tenant", {"key": key_id, "filters": filters}, expires)
        if len(token) > MAX_LENGTH:
            raise QueryError(
                f"the token would have {len(token):,} characters, more than {MAX_LENGTH:,}; "
                "shorten the filters",
                field="filters",
            )
        return token

    def read(self, token: str) -> TenantClaims:
        """Return the content of a token; InvalidApiKey if it is not valid, or no longer."""
        try:
            return TenantClaims.model_validate(self._signer.verify("tenant", token))
        except ValidationError:
            raise InvalidApiKey("invalid tenant token; create a new one") from None


def is_tenant_token(token: str) -> bool:
    """Return whether a token has the form of a tenant token, which that of a key never has."""
    return token.count(".") == 2
