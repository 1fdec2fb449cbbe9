"""The calls of both clients, about one index and about a service as a whole.

Their signatures and documentation are those of the methods.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any, Final, Literal, Unpack

from klsa_search.client.protocol import Call, path_part, with_lists, without_arrays
from klsa_search.client.results import (
    ExcerptJson,
    FacetJson,
    FederatedJson,
    FederatedResults,
    FileJson,
    FileResult,
    IndexInfo,
    NothingJson,
    ResultsJson,
    ResultsListJson,
    SyncJson,
    read,
)
from klsa_search.collection.model import Document
from klsa_search.collection.reading_options import FileReading
from klsa_search.core.arguments import checked_argument, checked_items
from klsa_search.core.config import IndexSettings
from klsa_search.core.parameters import MatchName, SearchParameters
from klsa_search.core.service_reports import Analytics, Job, ListName, SynonymProposal
from klsa_search.errors import QueryError
from klsa_search.search.batches import Deleted, WriteResult
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.pages.excerpts import Excerpt
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.results import Hit, SearchResults
from klsa_search.search.query.query import Query, SearchOptions, VectorLike, as_query
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.search.sync import SyncResult

Synonyms = Mapping[str, Iterable[str]] | Iterable[str]
"""Synonyms by word, or rules: see `Index.set_synonyms`."""

Filter = str | Mapping[str, Any]


_written: Final = read(WriteResult)


def _deleted(answer: Any) -> Deleted:
    written = _written(answer)
    return Deleted(written.deleted, written.unknown)


class IndexCalls:
    """The calls about the index of this name; their methods are those of the clients."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def _path(self) -> str:
        return f"/indexes/{path_part(self.name)}"

    def info(self) -> Call[IndexInfo]:
        """Return its number of documents and state."""
        return Call("GET", self._path, read(IndexInfo))

    def refit(self) -> Call[Job]:
        """Rebuild the index from its documents in the background: see `wait` of the client.

        Return the job of a refit that waits or runs already, if there is one. WritingRefused.
        """
        return Call("POST", f"{self._path}/refit", read(Job), {}, is_idempotent=False)

    def update_settings(self, **settings: Unpack[IndexSettings]) -> Call[Job | None]:
        """Change settings; return the job of the refit if one of them needs it: see `wait`.

        Those that only queries use are in effect on return. QueryError for an invalid setting;
        IndexBusy if a refit with other settings waits or runs.
        """
        body = {"settings": dict(settings)}
        job = read(Job | None, "job")  # type: ignore[arg-type]  # a union is no `type`
        return Call("PATCH", self._path, job, body, is_idempotent=False)

    def search(
        self, query: str | Query, k: int = 10, **options: Unpack[SearchOptions]
    ) -> Call[SearchResults]:
        """Return the best documents: see `Index.search`; without `mask` and `count_tokens`."""
        body = search_body(self.name, as_query(query, k, options))
        return Call("POST", "/search", read(ResultsJson), body)

    def export(
        self,
        query: str | Query,
        columns: Iterable[str] = (),
        *,
        format: Literal["csv", "jsonl"] = "csv",
        limit: int | None = None,
        **options: Unpack[SearchOptions],
    ) -> Call[bytes]:
        """Return the hits of a search as rows: see `Index.export`; at most 10,000."""
        body = search_body(None, as_query(query, 10, options))
        del body["index"], body["k"]
        body |= {"columns": list(columns), "format": format, "limit": limit}
        return Call("POST", f"{self._path}/export", bytes, body)

    def explain(
        self,
        query: str,
        id: str,
        *,
        vector: VectorLike | None = None,
        **options: Unpack[SearchParameters],
    ) -> Call[Explanation]:
        """Return the parts of the score of a document: see `Index.explain`."""
        body: dict[str, Any] = {"q": query}
        body |= {name: value for name, value in options.items() if value is not None}
        if vector is not None:
            body["vector"] = without_arrays(vector)
        path = f"{self._path}/explain/{path_part(id)}"
        return Call("POST", path, read(Explanation, "explanation"), body)

    def suggest(
        self, typed: str, k: int = 10, *, filter: Filter | None = None, match: MatchName = "all"
    ) -> Call[tuple[Suggestion, ...]]:
        """Return completions of typed text: see `Index.suggest`."""
        body = {"q": typed, "k": k, "filter": filter, "match": match}
        suggestions = read(tuple[Suggestion, ...], "suggestions")
        return Call("POST", f"{self._path}/suggest", suggestions, body)

    def facet_search(
        self,
        field: str,
        facet_query: str = "",
        k: int = 10,
        *,
        query: str = "",
        filter: Filter | None = None,
    ) -> Call[Facet]:
        """Return the values of a metadata field that contain a text, most frequent first.

        facet_query    the text; blank finds every value
        query, filter  count in the matches of this search only; by default in all documents
        QueryError for an unknown field.
        """
        body = {"field": field, "facet_query": facet_query, "k": k, "q": query, "filter": filter}
        return Call("POST", f"{self._path}/facet-search", read(FacetJson), body)

    def rules(self) -> Call[list[dict[str, Any]]]:
        """Return the rules of searches, in order: see `Index.set_rules`."""
        return Call("GET", f"{self._path}/rules", read(list[dict[str, Any]], "rules"))

    def set_rules(self, rules: Iterable[Mapping[str, Any]]) -> Call[list[str]]:
        """Replace the rules: see `Index.set_rules`; return warnings. QueryError names a rule."""
        body = {"rules": list(rules)}
        return Call("PUT", f"{self._path}/rules", read(list[str], "warnings"), body)

    def put_rule(self, rule: Mapping[str, Any]) -> Call[list[str]]:
        """Replace the rule of the same ID, or add it as the last; return warnings."""
        path = f"{self._path}/rules/{path_part(str(rule.get('id')))}"
        return Call("PUT", path, read(list[str], "warnings"), dict(rule))

    def delete_rule(self, id: str) -> Call[None]:
        """Delete a rule; RuleNotFound."""
        path = f"{self._path}/rules/{path_part(id)}"
        return Call("DELETE", path, read(NothingJson, "rules"), is_idempotent=False)

    def document(self, id: str) -> Call[Document]:
        """Return a document; DocumentNotFound."""
        path, query = f"/documents/{path_part(id)}", {"index": self.name, "vectors": "true"}
        return Call("GET", path, read(Document), query=query)

    def excerpt(
        self, id: str, *, span: tuple[int, int] | None = None, page: int | None = None
    ) -> Call[Excerpt]:
        """Return a passage, or a part of a document: see `Index.excerpt`."""
        query = {"index": self.name, "span": span and f"{span[0]}-{span[1]}", "page": page}
        return Call("GET", f"/documents/{path_part(id)}", read(ExcerptJson), query=query)

    def event(
        self,
        type: Literal["click", "conversion"],
        results: SearchResults,
        hit: Hit,
        previous: SearchResults | None = None,
    ) -> Call[None]:
        """Record that a visitor used a hit of these results, if the service records analytics.

        previous  results of the search that the visitor replaced by this one
        QueryError if the results have no `search_id`.
        """
        if results.search_id is None:
            raise QueryError(
                "no `search_id` in the results: the service records no analytics, or not this "
                "search; start klsa-serve with --analytics",
                field="search_id",
            )
        body = {"type": type, "search_id": results.search_id, "id": hit.id, "position": hit.rank}
        if previous is not None and previous.search_id is not None:
            body["previous"] = previous.search_id
        accepted = read(NothingJson, "accepted")
        return Call("POST", f"{self._path}/events", accepted, body, is_idempotent=False)

    def analytics(self, days: int = 30, k: int = 20) -> Call[Analytics]:
        """Return figures by day, queries and clicked documents, k of each list.

        AnalyticsOff; InsufficientScope without the scope `write`.
        """
        query = {"days": days, "k": k}
        return Call("GET", f"{self._path}/analytics", read(Analytics), query=query)

    def analytics_csv(
        self, list: ListName = "queries", days: int = 30, k: int = 1_000
    ) -> Call[str]:
        """Return a list of the analytics as CSV, for a spreadsheet; errors as `analytics`."""
        query = {"list": list, "days": days, "k": k}
        return Call("GET", f"{self._path}/analytics.csv", str, query=query, is_json=False)

    def synonym_proposals(self, days: int = 30, k: int = 10) -> Call[list[SynonymProposal]]:
        """Return synonyms for the k most searched words that few documents contain; none is set."""
        path = f"{self._path}/analytics/synonyms"
        proposals = read(list[SynonymProposal], "proposals")
        return Call("GET", path, proposals, query={"days": days, "k": k})

    def synonyms(self) -> Call[dict[str, list[str]]]:
        """Return the synonyms of the index by word."""
        return Call("GET", f"{self._path}/synonyms", read(dict[str, list[str]], "synonyms"))

    def set_synonyms(self, synonyms: Synonyms) -> Call[int]:
        """Replace the synonyms: see `Index.set_synonyms`; return the number of words with some."""
        return self._change_synonyms("PUT", synonyms)

    def add_synonyms(self, synonyms: Synonyms) -> Call[int]:
        """Add synonyms: see `Index.add_synonyms`; return the number of words with some."""
        return self._change_synonyms("PATCH", synonyms)

    def _change_synonyms(self, method: str, synonyms: Synonyms) -> Call[int]:
        rules = (
            {word: list(forms) for word, forms in synonyms.items()}
            if isinstance(synonyms, Mapping)
            else list(synonyms)
        )
        path, body = f"{self._path}/synonyms", {"synonyms": rules}
        return Call(method, path, read(int, "words"), body)

    def add(self, batch: bytes) -> Call[int]:
        """Add the documents of an array of JSON; return how many."""
        return Call("POST", f"{self._path}/documents", read(int, "added"), batch)

    def patch(self, id: str, changes: Mapping[str, Any]) -> Call[WriteResult]:
        """Merge changes into a document, None removes a field: see `Index.patch`."""
        path = f"{self._path}/documents/{path_part(id)}"
        changes = checked_argument("changes", changes, Mapping)
        return Call("PATCH", path, read(WriteResult), dict(with_lists(changes)))

    def patch_many(self, changes: Iterable[Mapping[str, Any]]) -> Call[WriteResult]:
        """Merge changes into at most 1,000 documents, all or none: see `Index.patch_many`."""
        records = checked_items("changes", changes, Mapping)
        body = [dict(with_lists(record)) for record in records]
        return Call("PATCH", f"{self._path}/documents", read(WriteResult), body)

    def delete(self, ids: Iterable[str]) -> Call[Deleted]:
        """Delete documents by ID; return the number deleted, with the `unknown` IDs.

        ArgumentError for a text.
        """
        path, body = f"{self._path}/documents/delete-batch", checked_items("ids", ids, str)
        return Call("POST", path, _deleted, body, is_idempotent=False)

    def sync(
        self,
        lines: Iterable[bytes] | AsyncIterable[bytes],
        max_delete: str | int | None,
        dry_run: bool,
    ) -> Call[SyncResult]:
        """Make the index contain exactly the documents of these lines."""
        query = {"ids": "true", "dry_run": str(dry_run).lower(), "max_delete": max_delete}
        path = f"{self._path}/sync"
        return Call("POST", path, read(SyncJson), lines, query, "application/x-ndjson")

    def add_file(
        self, name: str, pieces: Iterable[bytes] | AsyncIterable[bytes], reading: FileReading
    ) -> Call[FileResult]:
        """Add the documents of a file of this name, sent in pieces."""
        query = {name: value for name, value in reading.items() if name != "columns"}
        columns = reading.get("columns") or {}
        query |= {role: "" if names is None else names for role, names in columns.items()}
        path = f"{self._path}/files/{path_part(name)}"
        return Call("PUT", path, read(FileJson), pieces, query, "application/octet-stream")


def search_body(index: str | None, query: Query) -> dict[str, Any]:
    """Return the parameters of a search as JSON; QueryError for those that are not JSON."""
    options = {
        name: value
        for name in query.model_fields_set - {"query", "k"}
        if (value := getattr(query, name)) is not None
    }
    for name in ("mask", "count_tokens"):
        if name in options:
            raise QueryError(
                f"{name} cannot be sent to a service; leave it out, or search the index in Python",
                field=name,
            )
    if "vector" in options:
        options["vector"] = without_arrays(options["vector"])
    return {"index": index, "q": query.query, "k": query.k, **options}


_WAIT: Final = 20.0
"""Seconds that the service waits for the end of a job before it answers, at most."""

_IDEMPOTENT: Final = frozenset({"GET", "PUT"})


class ServiceCalls:
    """The calls about a service; their methods are those of the clients."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotent: bool | None = None,
    ) -> Call[Any]:
        """Send any request of the HTTP API, and return the JSON of its answer.

        method      such as "GET"
        path        such as "/indexes"
        query       parameters of the URL, without those that are None
        body        JSON
        idempotent  whether it gives the same result if it is processed twice, so that it may be
                    sent again if its answer was lost; by default for GET and PUT
        """
        repeats = method.upper() in _IDEMPOTENT if idempotent is None else idempotent
        return Call(method, path, lambda answer: answer, body, query or {}, is_idempotent=repeats)

    def indexes(self) -> Call[list[IndexInfo]]:
        """Return all indexes that the key may see."""
        return Call("GET", "/indexes", read(list[IndexInfo], "indexes"))

    def create_index(self, name: str, settings: Mapping[str, Any]) -> Call[None]:
        """Create an empty index."""
        body = {"name": name, "settings": dict(settings)}
        return Call("POST", "/indexes", read(NothingJson, "name"), body, is_idempotent=False)

    def delete_index(self, name: str) -> Call[None]:
        """Delete an index with all its documents; IndexNotFound."""
        path = f"/indexes/{path_part(name)}"
        return Call("DELETE", path, read(NothingJson, "name"), is_idempotent=False)

    def tenant_token(
        self, filters: Mapping[str, str | Mapping[str, Any]], *, expires_in: int = 3600
    ) -> Call[str]:
        """Return a token that finds only the documents of the filters, for the users of one tenant.

        filters     filters by index, as text or JSON; the token is for these indexes only
        expires_in  lifetime in seconds, at most a day
        Create it on your server and send it to their browser. QueryError for an invalid filter,
        IndexNotFound, InsufficientScope.
        """
        body = {"filters": dict(filters), "expires_in": expires_in}
        return Call("POST", "/tenant-tokens", read(str, "token"), body)

    def multi_search(self, queries: Iterable[Mapping[str, Any]]) -> Call[list[SearchResults]]:
        """Run several searches, of any indexes, in one request.

        queries  parameters of each: `index`, `q`, `k` and those of `Index.search`
        """
        body = {"queries": [_query_body(query) for query in queries]}
        return Call("POST", "/multi-search", read(ResultsListJson, "results"), body)

    def federated_search(
        self, queries: Iterable[Mapping[str, Any]], limit: int = 20, offset: int = 0
    ) -> Call[FederatedResults]:
        """Run several searches in one request, and merge their hits by rank.

        queries  parameters of each: `index`, `q`, `weight`, and those of `Index.search` without `k`
        A search with weight 2 contributes about two hits for each hit of one with weight 1.
        """
        bodies = [_query_body(query) for query in queries]
        for body in bodies:
            del body["k"]
        merged = {"queries": bodies, "federation": {"limit": limit, "offset": offset}}
        return Call("POST", "/multi-search", read(FederatedJson), merged)

    def jobs(self, index: str | None = None) -> Call[list[Job]]:
        """Return the jobs of all indexes, or of one, newest first."""
        return Call("GET", "/jobs", read(list[Job], "jobs"), query={"index": index})

    def job(self, id: int) -> Call[Job]:
        """Return a job; JobNotFound."""
        return Call("GET", f"/jobs/{id}", read(Job))

    def cancel_job(self, id: int) -> Call[Job]:
        """Cancel a job, and return it; a running one ends soon after. JobNotFound."""
        return Call("DELETE", f"/jobs/{id}", read(Job))

    def wait(self, job: Job, deadline: float) -> Call[Job]:
        """Return a job when it has ended, or soon after the deadline."""
        seconds = min(_WAIT, max(deadline - time.monotonic(), 0.0))
        query = {"wait": f"{seconds:.3f}"}
        return Call("GET", f"/jobs/{job.id}", read(Job), query=query)


def _query_body(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of one of several searches; parameters of the service alone stay as are."""
    options = dict(parameters)
    index, text = options.pop("index", None), options.pop("q", "")
    extra = {name: options.pop(name) for name in options.keys() - Query.model_fields.keys()}
    return search_body(index, Query(text, **options)) | extra
