"""A worker process of a service: see `klsa_search.cli.workers`.

    python -m klsa_search.cli.worker NUMBER DESCRIPTOR READY FOLDER

Settings are a line of JSON on stdin; the process ends when stdin is closed. It listens on the
socket DESCRIPTOR, and writes a byte to the pipe READY when it answers requests.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from functools import partial
from pathlib import Path

from klsa_search.cli.main import trust_tokenizers
from klsa_search.cli.serving import serve_at
from klsa_search.core.parallel import exit_with_parent
from klsa_search.service.settings import ServiceSettings


def main() -> None:
    """Serve."""
    number, descriptor, ready = map(int, sys.argv[1:4])
    folder = Path(sys.argv[4])
    line = b""
    while not line.endswith(b"\n"):  # single bytes, as `exit_with_parent` reads the rest
        byte = os.read(0, 1)
        if not byte:
            return
        line += byte
    exit_with_parent(partial(shutil.rmtree, folder, ignore_errors=True))
    trust_tokenizers()
    settings = ServiceSettings.model_validate_json(line)

    def report_ready() -> None:
        os.write(ready, b"\n")
        os.close(ready)

    with socket.socket(fileno=descriptor) as listener:
        serve_at(settings, listener, worker=number, on_ready=report_ready)


if __name__ == "__main__":
    main()
