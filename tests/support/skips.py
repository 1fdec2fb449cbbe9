"""Reasons for which tests may be skipped, by the kind of missing thing.

A skip for any other reason fails. Skips of the kinds in `KLSA_REQUIRE=collections,browser` fail
too.
"""

import os
import re
from typing import Any

import pytest

ALLOWED = {
    "collections": r"are not at .*; name their folder in KLSA_COLLECTIONS",
    "datasets": r"are not at .*; name their folder in KLSA_DATASETS"
    r"|is in none of the folders of data",
    "browser": r"there is no Chromium",
    "node": r"Node.js is not installed|KLSA_NODE_MODULES does not name a folder",
    "generators": r"a generator is not installed",
    "pyright": r"pyright is not installed",
    "compiler": r"needs a C compiler|needs objdump",
    "servers": r"(nginx|promtool|gunicorn) is not installed",
    "registry": r"needs pip and the package registry",
    "instruction-set": r"the processor does not have it: avx",
    "strace": r"needs strace|strace may not trace",
    "ray": r"(?i)ray is not installed|kubernetes-validate is not installed",
    "connect": r"needs (onnxruntime|pandas|polars|pyarrow|python_calamine|watchfiles|Haystack"
    r"|LangChain|langchain-tests"
    r"|version 2 of mcp|PyTerrier|the extra irds)|is not installed: make test-connect",
    "tracing": r"an audit hook ends traced threads of Python 3\.11",
    "array-api": r"SCIPY_ARRAY_API is not set",  # scikit-learn checks it for other array libraries
    "checkout": r"is no checkout|no part of an sdist",
    "system": r"needs (fork|/proc|Linux|root|SIGKILL|a shell|file names of any bytes)",
}


def reason_to_fail(reason: str) -> str | None:
    """Return why a test that is skipped for this reason fails; None if it may be skipped."""
    required = {kind for kind in os.environ.get("KLSA_REQUIRE", "").split(",") if kind}
    if unknown := sorted(required - set(ALLOWED)):
        return f"KLSA_REQUIRE names unknown kinds {unknown}; use {', '.join(ALLOWED)}"
    kinds = [kind for kind, pattern in ALLOWED.items() if re.search(pattern, reason)]
    if not kinds:
        return f"skipped for a reason that is not in tests/support/skips.py: {reason}"
    if required.intersection(kinds):
        return f"skipped although KLSA_REQUIRE asks for {kinds[0]}: {reason}"
    return None


def without_hidden_skips(report: Any) -> Any:
    """Turn a skip that is not allowed into a failure."""
    if report.skipped and not hasattr(report, "wasxfail"):
        *_, said = report.longrepr
        if why := reason_to_fail(said.removeprefix("Skipped: ")):
            report.outcome, report.longrepr = "failed", why
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Any:
    return without_hidden_skips((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Any:
    return without_hidden_skips((yield))
