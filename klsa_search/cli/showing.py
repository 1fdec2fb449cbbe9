"""What klsa-search shows of an answer: a table for people, JSON for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from klsa_search.cli.explaining import write_explanation
from klsa_search.cli.output import Cell, Column, Marked, echo, write_json, write_table

if TYPE_CHECKING:
    from klsa_search.search.language import Relaxed
    from klsa_search.search.results import Hit, SearchResults


_RELAXED: Final[dict[Relaxed, str]] = {
    "plain_text": "the query has more plain words than operators; --operators applies all of them",
    "nothing_to_exclude_from": "the query only excludes; add a word to search for",
    "no_match": "no document contains the phrase; put + before it to require it",
}


def write_results(results: SearchResults) -> None:
    """Write what was found, with what was wished for besides."""
    interpretation = results.interpretation
    for word, right in interpretation.corrections.items():
        unknown = word in interpretation.unknown
        said = f"did you mean `{right}`?" if unknown else f"showing results for `{right}`"
        echo(f"no match for `{word}`; {said}", err=True)
    for written, reason in interpretation.relaxed.items():
        echo(f"`{written}` was read as plain words: {_RELAXED[reason]}", err=True)
    if not results.hits:
        echo("no documents found")
    else:
        columns = [
            Column("rank", right=True),
            Column("id"),
            Column("score", right=True),
            *([] if results.quality is None else [Column("quality", right=True)]),
            Column("title", wraps=True),
            Column("snippet", wraps=True),
        ]
        rows = [
            (str(hit.rank), hit.id, f"{hit.score:.4f}", *_qualities(hit), *_texts(hit))
            for hit in results
        ]
        write_table(columns, rows)
        if results.good_match is False:
            echo("no good match")
        for hit in results:
            if hit.explanation is not None:
                echo()
                write_explanation(hit.explanation)
    for name, facet in results.facets.items():
        echo()
        counts = [(str(value), str(count)) for value, count in facet.values]
        write_table([Column(name, wraps=True), Column("documents", right=True)], counts)


def write_results_json(index: str, generation: str, results: SearchResults) -> None:
    """Write the same for programs."""
    write_json({"index": index, "generation": generation, **as_dict(results)})


def as_dict(results: SearchResults) -> dict[str, Any]:
    """What a search found, without what was not asked for."""
    found = asdict(results)
    for hit in found["hits"]:
        for name in ("explanation", "highlight", "quality"):
            if hit[name] is None:
                del hit[name]
    if found["quality"] is None:
        del found["quality"]
    else:
        found["good_match"] = results.good_match
    return found


def _qualities(hit: Hit) -> tuple[str, ...]:
    return () if hit.quality is None else (f"{hit.quality:.2f}",)


def _texts(hit: Hit) -> tuple[Cell, Cell]:
    """Title and snippet, with marks where there are any."""
    if hit.highlight is None:
        return hit.title, hit.snippet
    title, snippet = (hit.highlight[name] for name in ("title", "snippet"))
    return Marked(title.text, title.marks), Marked(snippet.text, snippet.marks)
