"""Logs of the service: one record for each request, and JSON lines of all records.

Requests are logged at level INFO: those that may change something by `klsa_search.changes`, the
audit log, which also has changes of the key file, and all others by `klsa_search.requests`.
In JSON lines control characters are escaped, and all characters beyond ASCII too, so that a request
cannot forge a line.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

from starlette.types import Scope

from klsa_search.service.middleware.clients import address_of

REQUESTS = logging.getLogger("klsa_search.requests")
CHANGES = logging.getLogger("klsa_search.changes")

_LONGEST = 1000  # maximum number of characters of a path or query


class JsonLog(logging.Handler):
    """Writes records as lines of JSON to a stream; a line that cannot be written is lost.

    A record with an attribute `fields` has these in place of its message. A library for JSON logs
    would save ten lines, and add a dependency.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream or sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, with its traceback if any."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        line |= getattr(record, "fields", None) or {"message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = logging.Formatter().formatException(record.exc_info)
        with suppress(OSError):
            self._stream.write(f"{json.dumps(line)}\n")
            self._stream.flush()


class RequestLog:
    """Logs each answered request.

    queries  whether to log the query too, which may be private
    """

    def __init__(self, queries: bool) -> None:
        self._queries = queries

    def __call__(self, scope: Scope, status: int, seconds: float) -> None:
        """Log an answered request: see `RequestObserver`."""
        state = scope["state"]
        log = CHANGES if state.get("is_change") else REQUESTS
        if not log.isEnabledFor(logging.INFO):
            return
        access = state.get("access")
        fields = {
            "request": state["request_id"],
            "method": scope["method"],
            "path": scope["path"][:_LONGEST],
            "status": status,
            "ms": round(1000 * seconds, 2),
            "index": state.get("index") or scope.get("path_params", {}).get("name"),
            "key": access.key if access is not None else None,
            "client": address_of(scope),
        }
        if self._queries:
            fields["query"] = scope["query_string"].decode("latin-1")[:_LONGEST]
        shown = "%(method)s %(path)a: %(status)d, key %(key)s, from %(client)s"
        log.info(shown, fields, extra={"fields": fields})
