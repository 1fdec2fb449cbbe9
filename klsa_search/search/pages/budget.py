"""Passages within a number of tokens, for assistants that read what a search finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from klsa_search.search.pages.results import Hit
from klsa_search.storage.documents import PassageId

CountTokens = Callable[[str], int]
"""Returns the number of tokens of a text."""

CANDIDATES: Final = 50
"""Passages that are considered at least, however few are requested."""

_SHINGLE: Final = 5
"""Words of the sequences by which two passages are compared."""

_SAME: Final = 0.8
"""Share of their word sequences from which two passages repeat each other."""


class Selection(NamedTuple):
    """Passages within a budget.

    tokens     of all texts
    truncated  whether passages that were found did not fit
    """

    hits: tuple[Hit, ...]
    tokens: int
    truncated: bool


def estimated_tokens(text: str) -> int:
    """Return about the number of tokens of a text: a quarter of its bytes in UTF-8.

    Language models have tokens of about four letters of English, and of about one character of
    Chinese, Japanese or Korean. Pass the tokenizer of your model to `search` to be exact.

    >>> from klsa_search.search.pages.budget import estimated_tokens
    >>> estimated_tokens("Check the coolant hose.")
    6
    """
    return -(-len(text.encode()) // 4)


def beginning(text: str, max_tokens: int) -> str:
    """Return the beginning of a text within an estimated number of tokens, to the end of a word.

    >>> from klsa_search.search.pages.budget import beginning
    >>> beginning("Check the coolant hose.", 5)
    'Check the coolant'
    """
    if estimated_tokens(text) <= max_tokens:
        return text
    start = text.encode()[: 4 * max_tokens].decode(errors="ignore")
    if not text[len(start)].isspace():
        last = max(start.rfind(" "), start.rfind("\n"))
        start = start[:last] if last > 0 else start
    return start


def within_budget(
    hits: Sequence[Hit],
    k: int,
    max_tokens: int,
    count_tokens: CountTokens,
    text_of: Callable[[str], str],
) -> Selection:
    """Return the best passages that fit into a budget, in their order, at most k.

    hits     passages, best first
    text_of  returns the text of a document by ID
    A passage that repeats an earlier one is left out. A passage that does not fit is left out, and
    a later one may fit. Passages that follow each other in a document become one hit, with the rank
    of the better one. Cost: the texts of the hits and of their documents.
    """
    chosen: list[Hit] = []
    joined: list[Hit] = []
    tokens, truncated = 0, False
    seen: list[frozenset[tuple[str, ...]]] = []
    for hit in hits:
        shingles = _shingles(hit.text or "")
        if any(_repeats(shingles, other) for other in seen):
            continue
        with_hit = _joined([*chosen, hit], text_of)
        if len(with_hit) > k:
            break
        size = sum(count_tokens(hit.text or "") for hit in with_hit)
        if size > max_tokens:
            truncated = True
            continue
        chosen.append(hit)
        seen.append(shingles)
        joined, tokens = with_hit, size
    ranked = tuple(replace(hit, rank=rank) for rank, hit in enumerate(joined, start=1))
    return Selection(ranked, tokens, truncated)


def _joined(hits: Sequence[Hit], text_of: Callable[[str], str]) -> list[Hit]:
    """Return hits in which passages with nothing between them are one, by the best rank of each."""
    runs: list[list[Hit]] = []
    for hit in sorted(hits, key=lambda hit: (hit.document_id or "", hit.span or (0, 0))):
        previous = runs[-1][-1] if runs else None
        if previous is not None and previous.document_id == hit.document_id:
            end, begin = (previous.span or (0, 0))[1], (hit.span or (0, 0))[0]
            if not text_of(hit.document_id or "")[end:begin].strip():
                runs[-1].append(hit)
                continue
        runs.append([hit])
    return sorted((_one(run, text_of) for run in runs), key=lambda hit: hit.rank)


def _one(run: Sequence[Hit], text_of: Callable[[str], str]) -> Hit:
    """Return consecutive passages as one, with the score of the best."""
    best = min(run, key=lambda hit: hit.rank)
    if len(run) == 1:
        return best
    document_id = best.document_id or ""
    begin, end = (run[0].span or (0, 0))[0], (run[-1].span or (0, 0))[1]
    return replace(
        best,
        id=str(PassageId(document_id, begin, end)),
        span=(begin, end),
        page=run[0].page,
        heading=run[0].heading,
        text=text_of(document_id)[begin:end],
    )


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = text.lower().split()
    return frozenset(
        tuple(words[first : first + _SHINGLE]) for first in range(max(len(words) - _SHINGLE + 1, 1))
    )


def _repeats(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    return len(one & other) >= _SAME * min(len(one), len(other))
