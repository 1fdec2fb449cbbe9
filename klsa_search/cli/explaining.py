"""What klsa-search shows of an explanation: a table of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klsa_search.cli.output import Column, write_table

if TYPE_CHECKING:
    from klsa_search.search.explaining import Explanation

_COLUMNS = (Column("part"), Column("value", right=True), Column("of what", wraps=True))


def write_explanation(found: Explanation) -> None:
    """Write the parts of a score, which add up to it, each with what adds most to it."""
    rows = [("score", _number(found.score), _facts(found))]
    if found.lexical is not None:
        terms = (f"{term.term} {_number(term.value)}" for term in found.lexical.terms)
        rows.append(("lexical", _number(found.lexical.value), ", ".join(terms)))
    if found.coverage is not None:
        covered = (
            f"{term.term} {_number(term.value)}{_named(' near', [one.id for one in term.lenders])}"
            for term in found.coverage.terms
        )
        rows.append(("coverage", _number(found.coverage.value), ", ".join(covered)))
    if found.latent is not None:
        terms = (f"{term.term} {_number(term.value)}" for term in found.latent.terms)
        rows.append(("latent", _number(found.latent.value), ", ".join(terms)))
    if found.expansion is not None:
        seeds = [
            f"{seed.id} {_number(seed.value)}{_named('', [one.term for one in seed.shared])}"
            for seed in found.expansion.seeds
        ]
        others = [f"others {_number(found.expansion.others)}"] if seeds else []
        rows.append(("expansion", _number(found.expansion.value), ", ".join(seeds + others)))
    write_table(_COLUMNS, rows)


def _facts(found: Explanation) -> str:
    facts = [f"{found.ranker} of {found.id}", f"BM25 {_number(found.bm25)}"]
    if found.alpha is not None:
        facts.append(f"alpha {_number(found.alpha)}")
    if found.feedback:
        facts.append(f"terms of {', '.join(found.feedback)}")
    if found.estimated:
        facts.append(f"estimated: {', '.join(found.estimated)}")
    return "; ".join(facts)


def _named(by: str, names: list[str]) -> str:
    return f" ({by.strip()}{': ' if by else ''}{', '.join(names)})" if names else ""


def _number(value: float) -> str:
    return f"{value:.4f}"
