"""Error codes of the HTTP API, each declared once: its status, its cause and how to fix it.

docs/reference/error-codes.md is generated from this table: see tools/error_codes_page.py.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple


class ErrorCode(NamedTuple):
    """What an error code means.

    status  HTTP status
    cause   why a request gets it
    fix     what the client or the operator of the service can do
    """

    status: int
    cause: str
    fix: str


ERROR_CODES: Final = MappingProxyType(
    {
        "bad_request": ErrorCode(
            400,
            "The request is not valid HTTP/1.1.",
            "Correct the request, or shorten its headers.",
        ),
        "bad_json": ErrorCode(
            400, "The body is not valid JSON.", "Correct the body at the character that is named."
        ),
        "invalid_api_key": ErrorCode(
            401,
            "The service requires an API key, and the request has none, or one that is unknown, "
            "revoked or expired.",
            "Send `Authorization: Bearer KEY` with a key created by `klsa-keys add NAME`.",
        ),
        "insufficient_scope": ErrorCode(
            403,
            "The API key lacks the scope, or is restricted to other indexes.",
            "Use a key with the scope in `WWW-Authenticate`: `klsa-keys add NAME --scope SCOPE`.",
        ),
        "writing_refused": ErrorCode(
            403,
            "The service or the index is read-only, the index is full, or writes need an API key.",
            "Follow the message: create a key with scope write, start `klsa-serve` with "
            "`--writable`, or rebuild the index with `--expansion sparse`.",
        ),
        "not_found": ErrorCode(
            404, "The path is not an endpoint.", "See `/docs` for all endpoints."
        ),
        "index_not_found": ErrorCode(
            404,
            "The service has no index or alias of this name.",
            "Choose one of `GET /indexes`, or build it.",
        ),
        "document_not_found": ErrorCode(
            404, "The index has no document with this ID.", "Check the ID."
        ),
        "term_not_found": ErrorCode(
            404,
            "No document of the index contains the term.",
            "Check the spelling; `POST /indexes/{name}/analyze` shows the terms of a text.",
        ),
        "method_not_allowed": ErrorCode(
            405, "The path does not support this method.", "Use one of the methods in `Allow`."
        ),
        "request_timeout": ErrorCode(
            408, "The rest of the request did not arrive in time.", "Send the request again."
        ),
        "body_too_slow": ErrorCode(
            408, "The body arrived too slowly.", "Send it faster, or in several requests."
        ),
        "body_too_long": ErrorCode(
            413, "The body is too large.", "Send less at a time, or documents as lines of JSON."
        ),
        "unsupported_media_type": ErrorCode(
            415, "The content type is not supported.", "Send the content type that is named."
        ),
        "unknown_host": ErrorCode(
            421,
            "The `Host` header is not a name of this machine.",
            "Use a name of the machine, or start `klsa-serve` with `--allowed-host NAME`.",
        ),
        "bad_query": ErrorCode(
            422,
            "A parameter is missing, unknown or invalid, or the answer would be too large.",
            "Correct the parameter in `field`.",
        ),
        "bad_document": ErrorCode(
            422, "A document or its ID is not valid.", "Correct the document, then send it again."
        ),
        "bad_collection": ErrorCode(
            422, "The documents or judgements are not valid.", "Correct them as the message says."
        ),
        "rate_exceeded": ErrorCode(
            429, "The client exceeded `--rate-limit`.", "Wait for the seconds in `Retry-After`."
        ),
        "too_many_writes": ErrorCode(
            429, "Too many writes are waiting.", "Wait for the seconds in `Retry-After`."
        ),
        "bad_settings": ErrorCode(
            500,
            "A setting or file of the service is not valid, such as its key file.",
            "See the log of the service.",
        ),
        "internal": ErrorCode(
            500,
            "A bug.",
            "Report it, with the lines of the log that have the ID in `X-Request-ID`.",
        ),
        "missing_extra": ErrorCode(
            501,
            "An optional package is not installed.",
            "Install the extra that is named: `pip install 'klsa-search[EXTRA]'`.",
        ),
        "busy": ErrorCode(
            503,
            "The service has more requests than it can answer in time.",
            "Wait for the seconds in `Retry-After`; raise `--threads` or `--queue-size`.",
        ),
        "timed_out": ErrorCode(
            503,
            "The request waited or ran longer than the service allows.",
            "Send a cheaper request, or raise `--queue-timeout` or `--request-timeout`.",
        ),
        "index_unusable": ErrorCode(
            503,
            "The index cannot be read or written, or there is no index at all.",
            "Follow the message on the machine of the service.",
        ),
        "index_busy": ErrorCode(
            503,
            "Another process is changing the index.",
            "Wait for the seconds in `Retry-After`.",
        ),
        "index_damaged": ErrorCode(
            503,
            "A file of the index is missing or damaged.",
            "Run `klsa-index repair NAME`, or restore a backup.",
        ),
        "format_unsupported": ErrorCode(
            503,
            "The index has a format that this version cannot read.",
            "Run `klsa-index upgrade NAME`, or rebuild it.",
        ),
        "cluster_failed": ErrorCode(
            503, "The cluster cannot be reached, or its processes fail.", "Check `ray status`."
        ),
        "shard_missing": ErrorCode(
            503,
            "Some shards of the index do not answer.",
            "Check the machines of the cluster, or send `partial=true` for the other shards.",
        ),
    }
)
"""Error codes in the order of their statuses."""
