"""JSON log of the service: one line for each request, warning and error.

JSON escapes control characters, and all characters beyond ASCII are escaped too, so that a request
cannot forge a line.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from starlette.types import Scope

_LONGEST = 1000
"""Maximum number of characters of a path or query."""


class JsonLog(logging.Handler):
    """Writes lines of JSON to a stream; a line that cannot be written (disk full) is lost.

    As a handler it writes the warnings and errors of the process. A library for JSON logs would
    save ten lines, and add a dependency.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream or sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, with its traceback if any."""
        fields = {"logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            fields["traceback"] = logging.Formatter().formatException(record.exc_info)
        self.write(record.levelname.lower(), fields)

    def write(self, level: str, fields: dict[str, Any]) -> None:
        """Write one line."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": time, "level": level, **fields})
        with suppress(OSError):
            self._stream.write(f"{line}\n")
            self._stream.flush()


class RequestLog:
    """Logs each answered request.

    log      log to write to
    queries  whether to log the query too, which may be private
    """

    def __init__(self, log: JsonLog, queries: bool) -> None:
        self._log = log
        self._queries = queries

    def __call__(self, scope: Scope, status: int, seconds: float) -> None:
        """Log an answered request: see `RequestObserver`."""
        self._log.write("info", self._fields(scope, status, seconds))

    def _fields(self, scope: Scope, status: int, seconds: float) -> dict[str, Any]:
        state = scope["state"]
        access = state.get("access")
        fields = {
            "request": state["request_id"],
            "method": scope["method"],
            "path": scope["path"][:_LONGEST],
            "status": status,
            "ms": round(1000 * seconds, 2),
            "index": state.get("index"),
            "key": access.key if access is not None else None,
        }
        if self._queries:
            fields["query"] = scope["query_string"].decode("latin-1")[:_LONGEST]
        return fields
