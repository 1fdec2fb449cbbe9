"""Results of klsa-search: a table, or JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from klsa_search.cli.output import Cell, Marked, echo, numbers, wrapped, write_table
from klsa_search.core.wording import counted

if TYPE_CHECKING:
    from klsa_search.search.explain.explanation import Explanation
    from klsa_search.search.pages.results import Hit, RerankScore, SearchResults
    from klsa_search.search.query.interpretation import Relaxed


def write_explanation(explanation: Explanation, rerank: RerankScore | None = None) -> None:
    """Write the parts of a score, which sum to it, each with its largest contributions.

    rerank  rank and score by a reranker, which are not part of the score
    """
    parts = [("score", explanation.score, _facts(explanation))]
    if (lexical := explanation.lexical) is not None:
        terms = (f"{term.term} {_number(term.value)}" for term in lexical.terms)
        parts.append(("lexical", lexical.value, ", ".join(terms)))
    if (coverage := explanation.coverage) is not None:
        terms = (
            f"{term.term} {_number(term.value)}"
            f"{_named(' near', [neighbour.id for neighbour in term.neighbours])}"
            for term in coverage.terms
        )
        parts.append(("coverage", coverage.value, ", ".join(terms)))
    if (latent := explanation.latent) is not None:
        terms = (f"{term.term} {_number(term.value)}" for term in latent.terms)
        parts.append(("latent", latent.value, ", ".join(terms)))
    if (expansion := explanation.expansion) is not None:
        seeds = [
            f"{seed.id} {_number(seed.value)}{_named('', [one.term for one in seed.shared])}"
            for seed in expansion.seeds
        ]
        rest = [f"others {_number(expansion.remainder)}"] if seeds else []
        parts.append(("expansion", expansion.value, ", ".join(seeds + rest)))
    if (undivided := explanation.undivided) is not None:
        parts.append((explanation.ranker, undivided.value, "not divided into parts"))
    if (passage := explanation.passage) is not None:
        parts.append(("passage", passage.value, passage.explanation.id))
    if (vector := explanation.vector) is not None:
        fact = "no vector" if vector.cosine is None else f"cosine {_number(vector.cosine)}"
        parts.append(("vector", vector.value, f"{vector.space}: {fact}"))
    for effect in explanation.rules:
        did = f"position {effect.position}" if effect.factor is None else f"times {effect.factor:g}"
        parts.append(("rule", effect.value, f"{effect.rule}: {did}"))
    if rerank is not None:
        parts.append(("rerank", rerank.score, f"rank {rerank.rank} before"))
    rows = [(part, _number(value), of_what) for part, value, of_what in parts]
    write_table(["part", *numbers("value"), *wrapped("of what")], rows)


def _facts(explanation: Explanation) -> str:
    facts = [f"{explanation.ranker} of {explanation.id}", f"BM25 {_number(explanation.bm25)}"]
    if explanation.alpha is not None:
        facts.append(f"alpha {_number(explanation.alpha)}")
    if explanation.feedback:
        facts.append(f"terms of {', '.join(explanation.feedback)}")
    if explanation.estimated:
        facts.append(f"estimated: {', '.join(explanation.estimated)}")
    return "; ".join(facts)


def _named(by: str, names: list[str]) -> str:
    return f" ({by.strip()}{': ' if by else ''}{', '.join(names)})" if names else ""


def _number(value: float) -> str:
    return f"{value:z.4f}"


_RELAXED: Final[dict[Relaxed, str]] = {
    "plain_text": "the query has more plain words than operators; --operators applies all of them",
    "nothing_to_exclude_from": "the query only excludes; add a word to search for",
    "no_match": "no document contains the phrase; put + before it to require it",
    "capitals": "the whole query is in capitals; --operators applies AND, OR and NOT",
    "suffix": "the hyphen belongs to a suffix or option, so nothing is excluded",
    "number": "the query begins with a negative number; name what it excludes behind other words",
    "not_an_operator": "it means nothing there; see the query syntax",
    "short_prefix": "a prefix needs two characters",
    "other_language": "operators are AND, OR and NOT",
    "lower_case": "to exclude the word, search for `{instead}`",
}


def write_results(results: SearchResults, sort: Sequence[str] = ()) -> None:
    """Write the hits, with the fields that they are sorted by, explanations and facets."""
    from klsa_search.search.query.interpretation import filter_notes
    from klsa_search.search.query.syntax import QUOTES

    interpretation = results.interpretation
    applied = [word for word in interpretation.corrections if word not in interpretation.unknown]
    for word, correction in interpretation.corrections.items():
        note = f"showing results for `{correction}`"
        if word not in applied:
            note = f"did you mean `{correction}`?"
        elif word == applied[-1]:
            note += "; --spelling suggest searches as typed"
        echo(f"no match for `{word}`; {note}", err=True)
    for note in filter_notes(interpretation, results.query):
        echo(note, err=True)
    for phrase in interpretation.phrases:
        if interpretation.stop_words and phrase[0] not in QUOTES:
            echo(f"only documents with `{phrase}`; --no-operators searches its words", err=True)
    if left_out := interpretation.left_out:
        echo(f"the query is long: its {len(left_out)} lightest words do not count", err=True)
    if interpretation.boolean is not None:
        echo(f"searched as `{interpretation.boolean}`", err=True)
    for written, reason in interpretation.relaxed.items():
        instead = re.sub(r"(?i),?\s+(?:(?:and|but)\s+)?not\s+", " -", results.query)
        note = _RELAXED[reason].format(instead=instead)
        echo(f"`{written}` was read as plain words: {note}", err=True)
    if not results.hits:
        echo("no documents found")
    else:
        scores = numbers("score") if results.quality is None else numbers("score", "quality")
        sorted_by = [key.removesuffix(":desc").removesuffix(":asc") for key in sort]
        fields = [name for name in sorted_by if any(name in hit.metadata for hit in results)]
        rows = [
            (
                *(str(hit.rank), hit.id, f"{hit.score:.4f}"),
                *(() if hit.quality is None else (f"{hit.quality:.2f}",)),
                *(_cell(hit.metadata.get(name, "")) for name in fields),
                *_texts(hit),
            )
            for hit in results
        ]
        texts = wrapped("title", "snippet")
        write_table([*numbers("rank"), "id", *scores, *fields, *texts], rows)
        if results.good_match is False:
            echo("no good match")
    for warning in results.warnings:
        echo(f"warning: {warning}", err=True)
    if results.truncated:
        echo("more passages match than fit; raise --max-tokens to see them")
    for hit in results:
        if hit.explanation is not None:
            echo()
            write_explanation(hit.explanation, hit.rerank)
    for name, facet in results.facets.items():
        echo()
        counts = [(str(value), str(count)) for value, count in facet.values]
        write_table([*wrapped(name), *numbers("documents")], counts)


def _cell(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def as_dict(results: SearchResults) -> dict[str, Any]:
    """Return the results as a dictionary, without parts that were not requested."""
    facts = asdict(results)
    for name in ("rules", "warnings", "tokens", "truncated", "quality"):
        if facts[name] is None or facts[name] == ():
            del facts[name]
    facts["hits"] = [
        {name: value for name, value in hit.items() if value is not None} for hit in facts["hits"]
    ]
    return facts if results.quality is None else {**facts, "good_match": results.good_match}


def _texts(hit: Hit) -> tuple[Cell, Cell]:
    """Return title and snippet, with highlights if requested.

    If words of the query are in another searched field only, its passage is the snippet.
    """
    if hit.highlight is None:
        return hit.title + _location(hit), hit.snippet if hit.text is None else hit.text
    title, snippet, *rest = hit.highlight.values()
    snippet = next((other for other in (snippet, *rest) if other.marks), snippet)
    return Marked(title.text + _location(hit), title.marks), Marked(snippet.text, snippet.marks)


def _location(hit: Hit) -> str:
    """Return heading, page and further passages of the best passage of a long document."""
    page = None if hit.page is None else f"page {hit.page}"
    more = hit.more_passages and counted(hit.more_passages, "more passage")
    return "".join(f" › {part}" for part in (hit.heading, page, more) if part)
