"""The indexes, aliases and jobs that a request may see, and which one it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from klsa_search.core.service_reports import Job
from klsa_search.errors import IndexNotFound, InsufficientScope, QueryError
from klsa_search.search.filters.conditions import And
from klsa_search.search.filters.masks import FilterLike, filter_of
from klsa_search.search.index import Index
from klsa_search.service.catalog import Catalog
from klsa_search.service.catalog_entries import Status
from klsa_search.service.keys import Scope
from klsa_search.service.middleware.auth import Access
from klsa_search.service.schemas.errors import shown_message


class VisibleIndexes:
    """The indexes of a catalog that a request may see with its access."""

    def __init__(self, catalog: Catalog, access: Access) -> None:
        self._catalog = catalog
        self._access = access

    def statuses(self, also: str | None = None) -> list[Status]:
        """Return their states, and that of `also`: see `Catalog.statuses`.

        None for a tenant token: they tell of all documents. Paths in failures are those within the
        index directory.
        """
        if self._access.filters is not None:
            return []
        sees, home = self._access.sees, self._catalog.home
        return [
            replace(status, failure=status.failure and shown_message(status.failure, home))
            for status in self._catalog.statuses()
            if status.name == also or sees(status.name)
        ]

    def aliases(self) -> dict[str, str]:
        """Return their aliases by name, and the aliases that the access names."""
        sees = self._access.sees
        aliases = self._catalog.aliases().items()
        return {name: index for name, index in aliases if sees(name) or sees(index)}

    def has_job(self, job: Job) -> bool:
        """Return whether the request may see a job, by its index or an alias of it."""
        return self._access.sees(job.index) or job.index in self.aliases().values()

    def resolve(self, scope: Scope, name: str | None) -> str | None:
        """Return the index of a name or alias, if the request may use it with this scope.

        An alias is resolved here, so that the checked index is the one used even if the alias
        changes meanwhile. None if no name is given, and one is not needed. IndexNotFound,
        InsufficientScope, QueryError.
        """
        name = self._requested(name)
        if name is None:
            self._access.require(scope)
            return None
        index = self._catalog.aliases().get(name, name)
        self._access.require(scope, index if self._access.sees(index) else name)
        return index

    def resolve_with_filter(
        self, scope: Scope, name: str | None
    ) -> tuple[str | None, FilterLike | None]:
        """Return the index of a name or alias, and the filter of a tenant token for it.

        A filter for the alias and one for the index both apply.
        """
        filters = self._access.filters
        if filters is None:
            return self.resolve(scope, name), None
        name = self._requested(name)
        index = self.resolve(scope, name)
        names = dict.fromkeys((name, index))
        applied = [filters[target] for target in names if target is not None and target in filters]
        if not applied:
            raise InsufficientScope(
                f"the tenant token is not valid for index {name!r}; use another token",
                scope="search",
                field="index",
            )
        return index, applied[0] if len(applied) == 1 else And(tuple(map(filter_of, applied)))

    def _requested(self, name: str | None) -> str | None:
        """Return the requested index; errors name only indexes that the request may see."""
        if self._access.indexes is None:
            return name
        aliases = sorted(self.aliases())
        served = sorted(
            status.name for status in self._catalog.statuses() if self._access.sees(status.name)
        )
        choices = ", ".join(served or aliases) or "none"
        if name is None:
            if len(served or aliases) != 1:
                raise QueryError(f"index is missing; choose one of {choices}", field="index")
            return (served or aliases)[0]
        if name in self._access.indexes and name not in (*served, *aliases):
            raise IndexNotFound(f"no index `{name}`; choose from {choices}", field="index")
        return name


def cost_for(
    index: Index | None, filter_: FilterLike | None, cost: Callable[[Index], float]
) -> float:
    """Return the estimated milliseconds of a request to the documents of a tenant token, or to all.

    Making the view of them is included; without it, the estimate is by the view. 0 for no index.
    """
    if index is None:
        return 0.0
    if filter_ is None:
        return cost(index)
    making = index.restriction_cost(filter_)
    return making + cost(index) if making else cost(restricted_by_token(index, filter_))


def restricted_by_token(index: Index, filter_: FilterLike) -> Index:
    """Return the documents of a tenant token; InsufficientScope if its filter is invalid now."""
    try:
        return index.restricted(filter_)
    except QueryError as error:
        raise InsufficientScope(
            f"cannot apply the filter of the tenant token: {error.message}; create another token",
            scope="search",
        ) from None
