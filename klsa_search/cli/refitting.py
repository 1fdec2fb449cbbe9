"""The process in which a service refits an index: see `klsa_search.service.refitting`.

    python -m klsa_search.cli.refitting --home HOME NAME

It is `klsa-index refit` behind everything else: at low priority, the first to go where memory runs
out, and ended with its standard input, which is when the service does.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from klsa_search.cli.frame import run
from klsa_search.cli.writing import refit
from klsa_search.processors import end_with_starter

MODULE: Final = "klsa_search.cli.refitting"

_NICE: Final = 10
"""It gets a tenth of a processor that others want, too."""


def main() -> None:
    """Refit."""
    end_with_starter()
    signal.signal(signal.SIGTERM, _leave)  # so that what was made is cleared away
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(OSError):  # of Linux alone
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    run(refit)


def _leave(*_: Any) -> NoReturn:
    sys.exit(1)


if __name__ == "__main__":
    main()
