"""Answers as lines of text, and what differs between two of them."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import astuple, is_dataclass
from typing import Any

from klsa_search import Explanation, Hit, Index, SearchResults
from klsa_search.errors import KlsaError
from tools.golden.world import Question

COLUMNS = ("total", "hits", "texts", "interpretation", "facets", "parts")
_DIGITS, _TOLERANCE = 4, 0.002
"""Parts of a score are sums in any order and split in any way that adds up, so they may differ by
this share of the largest of them; scores may not."""


def lines_of(index: Index, questions: list[Question]) -> Iterator[str]:
    """Yield the answer to each question: the columns of `COLUMNS`, separated by tabs.

    total           number of matches
    hits            ID and bits of the score (float32) of each hit, in order
    texts           digest of titles, snippets, highlights, passages and qualities
    interpretation  digest of how the query was read, of the rules that applied, and warnings
    facets          digest of the facets
    parts           of each explained hit: lexical, coverage, latent, expansion, passage, vector
    """
    for question in questions:
        try:
            results = index.search(question.text, **question.options)
        except KlsaError as error:
            yield f"{type(error).__name__}: {error}"
            continue
        yield "\t".join(
            (
                str(results.total),
                " ".join(f"{hit.id}:{_bits(hit.score)}" for hit in results),
                _digest([_texts(hit) for hit in results]),
                _digest([_values(results.interpretation), results.rules, results.warnings]),
                _digest(sorted((name, _values(facet)) for name, facet in results.facets.items())),
                " ".join(_parts(hit.explanation) for hit in results if hit.explanation),
            )
        )


def shown(results: SearchResults) -> str:
    """Return a whole answer as indented JSON, for people."""
    return json.dumps(results, default=_readable, indent=2, ensure_ascii=False)


def difference(before: str, after: str) -> str | None:
    """Return which columns of two answers differ, with the values of short ones; None if equal."""
    if before == after:
        return None
    old, new = before.split("\t"), after.split("\t")
    if len(old) != len(COLUMNS) or len(new) != len(COLUMNS):
        return f"was {before!r}, is {after!r}"
    if _almost_equal(old[-1], new[-1]):
        new[-1] = old[-1]
    return (
        "; ".join(
            f"{name}: was {was}, is {now}"
            for name, was, now in zip(COLUMNS, old, new, strict=True)
            if was != now
        )
        or None
    )


def _almost_equal(before: str, after: str) -> bool:
    """Return whether the parts of explanations are equal but for rounding."""
    old, new = (
        [float(value or 0) for hit in parts.split(" ") for value in hit.split("/")]
        for parts in (before, after)
    )
    largest = max(map(abs, old), default=0.0)
    return len(old) == len(new) and all(
        abs(one - other) <= _TOLERANCE * largest for one, other in zip(old, new, strict=True)
    )


def _bits(score: float) -> str:
    return struct.pack(">f", score).hex()


def _texts(hit: Hit) -> Any:
    marks = {name: _values(one) for name, one in sorted((hit.highlight or {}).items())}
    quality = None if hit.quality is None else round(hit.quality, 6)
    return [
        hit.title,
        hit.snippet,
        marks,
        hit.span,
        hit.heading,
        hit.more_passages,
        hit.text,
        quality,
    ]


def _parts(explanation: Explanation) -> str:
    values = (
        getattr(getattr(explanation, name), "value", None)
        for name in ("lexical", "coverage", "latent", "expansion", "passage", "vector")
    )
    return "/".join("" if value is None else f"{value:.{_DIGITS}g}" for value in values)


def _values(thing: Any) -> Any:
    """Return the values of a dataclass, without their names, which may change."""
    return [value for value in astuple(thing) if value not in (None, (), {})]


def _digest(thing: Any) -> str:
    text = json.dumps(thing, ensure_ascii=False, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=5).hexdigest()


def _readable(thing: Any) -> Any:
    if is_dataclass(thing):
        return {name: getattr(thing, name) for name in thing.__dataclass_fields__}
    return dict(thing) if hasattr(thing, "keys") else str(thing)
