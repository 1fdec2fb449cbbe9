"""Queries that are the ID of a document, or so much of it that they name no other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final

from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.mask import Mask
from klsa_search.search.query.codes import DIGITS, MAX_RUNS
from klsa_search.search.query.query import Query
from klsa_search.search.state.state import State
from klsa_search.search.suggest.titles import Part

_ID: Final = re.compile(r"(?=\S*[^\W\d_])(?=\S*(?:\d|_|[^\w\s]))[^\s\ud800-\udfff]+")
"""Queries that may be the ID of a document: others are words or numbers, even if they are IDs."""
_NUMBER: Final = re.compile(rf"#?(\d{{{DIGITS},}})")
_LETTERS_AND_DIGITS: Final = re.compile(r"([^\W\d_]+)[\s\W_]?(\d+)")
_SIGNS: Final = ("-", "_", "", "/", ".", ":")
_BLANK_BEFORE_DIGIT: Final = re.compile(r"(?<=[^\W_]) (?=\d)")
_RUN: Final = re.compile(r"\d+|[^\W\d_]+")
_BLANK_BEFORE_OTHER: Final = re.compile(r"\s(?!\d)")


def id_match_of(state: State, request: Query, mask: Mask | None, evidence: Evidence) -> int | None:
    """Return the doc id of the document whose ID is the query, or None.

    Else, unless a document contains the query as a word, the document of the only ID with the same
    letters and digits, whatever signs are between them. A query of `DIGITS` digits or more, or a
    number of so many, also stands for the only ID that ends with it, or else has it before a sign.
    That ID must have a letter, and its document must pass the filters.
    """
    text = request.query.strip()
    if _BLANK_BEFORE_OTHER.search(text):  # nearly all queries
        return None
    if number := _NUMBER.fullmatch(text):
        return _only_document(state, number[1], [number[1]], request, mask, evidence)
    candidates = map(state.documents.find, _ids_of(text))
    doc_id = next((doc_id for doc_id in candidates if doc_id is not None), None)
    code = _BLANK_BEFORE_DIGIT.sub("-", text)
    runs = _RUN.findall(code) if _ID.fullmatch(code) else []
    if not 2 <= len(runs) <= MAX_RUNS or not any(map(str.isdecimal, runs)):
        return doc_id
    # A document of another partition may have the ID, and all must ask the same.
    if evidence.of(("ID", text), lambda: int(doc_id is not None)):
        return doc_id
    return _only_document(state, code, runs, request, mask, evidence)


def id_rank(query: str, id_: str | None) -> int:
    """Return the rank of an ID among those that a query may stand for, 0 for the likeliest."""
    ids = _ids_of(query.strip())
    return ids.index(id_) if id_ in ids else 0  # a part of an ID names no more than one


def _ids_of(text: str) -> list[str]:
    """Return the IDs that a query may be, the likeliest first.

    As it is written, else with a sign between letters and digits; each in this case of letters,
    else in upper or lower case, else with a capital first letter.
    """
    ids = [text] if " " not in text and _ID.fullmatch(text) else []
    if text[-1:].isdecimal() and (parts := _LETTERS_AND_DIGITS.fullmatch(text)):
        ids += [f"{parts[1]}{sign}{parts[2]}" for sign in _SIGNS]
    cases = ((id_, id_.upper(), id_.lower(), id_.capitalize()) for id_ in ids)
    return list(dict.fromkeys(chain.from_iterable(cases)))


def _only_document(
    state: State,
    code: str,
    runs: Sequence[str],
    request: Query,
    mask: Mask | None,
    evidence: Evidence,
) -> int | None:
    """Return the only document with a part of its ID that no document contains: see above.

    runs  of letters and of digits of the code
    """
    if _is_contained(state, code, runs, evidence):
        return None
    parts: list[Part] = ["end", "inside"]
    if len(runs) > 1:
        has_digits = sum(len(run) for run in runs if run.isdecimal()) >= DIGITS
        parts = ["all", *parts] if has_digits else ["all"]
    live = state.snapshot.live_docs()  # without those that a view hides
    ids, doc_ids, total, part = state.texts.ids, list[int](), 0, parts[0]
    for part in parts:  # with the same total in all partitions
        doc_ids = ids.with_runs(runs, state.documents, live, part)
        total = evidence.of(("IDs of a code", code, part), partial(len, doc_ids))
        if total:
            break
    if total != 1 or not doc_ids:
        return None
    (doc_id,), (id_,) = doc_ids, state.documents.ids(doc_ids)
    # The answer names the ID, which filters and masks may hide; it has no score.
    allowed = (
        (mask is None or doc_id in mask)
        and (request.filter is None or doc_id in state.filters.of(request.filter))
        and (request.min_score or 0.0) <= 0.0
    )
    last = runs[-1] if part != "all" and runs[-1].isdecimal() else r"\b\B"  # nothing
    is_decimal = re.search(rf"\d[.,]{last}(?!\d)|(?<!\d){last}[.,]\d", id_)
    return doc_id if allowed and _ID.fullmatch(id_) and not is_decimal else None


def _is_contained(state: State, code: str, runs: Sequence[str], evidence: Evidence) -> bool:
    parser = state.query_parser
    if len(runs) > 1:
        return parser.codes.code(code, evidence) is not None

    def containing() -> int:
        frequencies = state.snapshot.query_kernel.counts.frequencies
        numbers = (word.number for word in parser.pieces.words(code))
        return sum(int(frequencies[number]) for number in numbers if number >= 0)

    return evidence.of(("number", code), containing) > 0
