"""The journal: one line of JSON for each request, warning and error.

JSON has an escape for whatever could end a line or steer a terminal, and all beyond ASCII is
escaped, so that a request cannot forge a line.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from starlette.types import Scope

from klsa_search.service.middleware.request_id import request_id

_LONGEST = 1000
"""Maximum number of characters of a path or query."""


class Journal(logging.Handler):
    """Writes lines to a stream; what cannot be written, as on a full disk, is lost.

    As a handler it takes the warnings and errors of all that runs here. A library for JSON logs
    would save ten lines, and be one more dependency.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream or sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        """Write what was logged, with its traceback where it has one."""
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


class Requests:
    """Writes a line for each request that was answered.

    queries  whether to tell the query too: what people look for is theirs
    """

    def __init__(self, journal: Journal, queries: bool) -> None:
        self._journal = journal
        self._queries = queries

    def __call__(self, scope: Scope, status: int, seconds: float) -> None:
        """Tell of one. See `timing.Tell`."""
        self._journal.write("info", self._facts(scope, status, seconds))

    def _facts(self, scope: Scope, status: int, seconds: float) -> dict[str, Any]:
        state = scope["state"]
        access = state.get("access")
        fields = {
            "request": request_id(scope),
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
