"""Invariants of plug-ins, as functions to call from tests: they raise AssertionError.

    def test_ranker(tmp_path):
        check_ranker("my-ranker", tmp_path)

Each takes the name of an installed plug-in, or of a built-in part, and an empty folder, in which it
builds small indexes. Cost: a second or two.
"""

from __future__ import annotations

import filecmp
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search.analysis.tokenizers import function_of
from klsa_search.collection.model import Document
from klsa_search.indexing.build import build
from klsa_search.indexing.rewrite import refit
from klsa_search.lowrank.expansion_matrix import spectral_function
from klsa_search.mining.similar import similar
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.index import Index, open_index
from klsa_search.search.rankers import needs_eigenvectors

_TOPICS: Final = (
    "engine coolant pump hose radiator leak",
    "tyre road wheel rubber grip rain",
    "bread oven flour yeast dough crust",
)
_QUERIES: Final = ("coolant pump", "flour flour crust engine", "common rain")
_TEXTS: Final = (
    "Engines, pumps and hoses: 3.5 litres!",
    "",
    "  \n ",
    "naïve café, Straße",
    "搜索引擎 и поиск",
    "one-two 'three' C++",
)


def check_ranker(name: str, home: Path) -> None:
    """Check that a ranker keeps the invariants of a search.

    Scores are finite, deterministic, and equal for equal indexes; ties are in order of doc ids;
    filters, pages and `min_score` select without changing scores; explanations add up to scores;
    deleted documents are not found, and searches after writes are those of the index opened again.

    >>> check_ranker("bm25", Path("of-ranker"))
    """
    with closing(_built(home, "one", ranker=name)) as index, closing(_built(home, "two")) as other:
        for query in _QUERIES:
            scores = index.scores(query)
            assert scores.shape == (index.max_doc,), "one score for each doc id"
            assert np.isfinite(scores).all(), "scores are finite"
            assert np.array_equal(scores, index.scores(query)), "the same query, the same scores"
            assert np.array_equal(scores, other.scores(query, ranker=name)), (
                "the same documents, the same scores"
            )
            _check_hits(index, query)
        assert index.search("nothingknown").total == 0, "no known word, no hits"
        assert index.search("").total == 0, "no word, no hits"
        if not needs_eigenvectors(index.settings):  # others are read-only
            _check_writes(index)


def check_kernel(name: str, home: Path) -> None:
    """Check that a weighting of document features makes an index that can be written to.

    K is positive semi-definite; equal documents build equal files; a document written later is
    weighted as by the build, so a copy is the nearest to its original; a refit is a build.

    >>> check_kernel("bm25", Path("of-kernel"))
    """
    with (
        closing(_built(home, "one", kernel=name)) as index,
        closing(_built(home, "two", kernel=name)) as other,
    ):
        _check_equal_files(index, other)
        gram = index.arrays.kernel.explicit()
        assert np.allclose(gram, gram.T, atol=1e-6), "K is symmetric"
        smallest = float(np.linalg.eigvalsh(gram).min())
        assert smallest > -1e-4 * float(np.trace(gram)), "K is positive semi-definite"
        for query in _QUERIES:
            _check_hits(index, query)
        original = index.document("d003")
        index.add([{"id": "copy", "text": original.text}])
        (nearest,) = similar(index, "copy", 1, kernel="document")
        assert nearest.score > 0.9, "a copy written later is like its original"
        _check_writes(index)
        live = list(index.live_documents())
    with (
        closing(refit(home / "one")) as refitted,
        closing(build(live, name="fresh", home=home, language="none", kernel=name)) as fresh,
    ):
        _check_equal_files(refitted, fresh)


def check_spectral(name: str, home: Path, *, gamma: float = 0.3) -> None:
    """Check that a function of the spectrum is one, and that an index answers with its D.

    >>> check_spectral("squashing", Path("of-spectral"), gamma=0.2)
    """
    function = spectral_function(name, gamma)
    relative = np.linspace(1.0, 0.01, 50)
    before = relative.copy()
    values = function.of(relative)
    assert np.array_equal(relative, before), "the eigenvalues are not changed"
    assert values.shape == relative.shape, "one value for each eigenvalue"
    assert np.isfinite(values).all(), "values are finite"
    assert np.isfinite(function.value), "f(0) is finite"
    assert (values >= 0).all(), "D is positive semi-definite"
    assert np.array_equal(values, spectral_function(name, gamma).of(relative)), "deterministic"
    with closing(_built(home, "one", spectral=name, gamma=gamma)) as index:
        for query in _QUERIES:
            _check_hits(index, query)


def check_tokenizer(name: str, home: Path) -> None:
    """Check that a tokenizer returns words in order, and that documents are found by theirs.

    name  of a plug-in, or `module:function` that this process trusts

    >>> check_tokenizer("own-words", Path("of-tokenizer"))
    Traceback (most recent call last):
    klsa_search.errors.PluginFailed: tokenizer `own-words` is not installed; install ...
    """
    find = function_of(name)
    for text in _TEXTS:
        words = list(find(text))
        assert words == list(find(text)), "the same text, the same words"
        before = 0
        for word, start, end in words:
            assert isinstance(word, str), "a word is a text"
            assert before <= start < end <= len(text), "words are in order and within the text"
            before = start
    with closing(_built(home, "one", tokenizer=name, ranker="bm25")) as index:
        for query in _QUERIES:
            assert index.search(query).total, "a document is found by its words"
        index.add([{"id": "later", "text": "unheard of words"}])
        assert [hit.id for hit in index.search("unheard", k=1).hits] == ["later"], (
            "a document written later is found by its words"
        )


def _documents() -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(0)
    for number in range(36):
        words = _TOPICS[number % 3].split()
        size = int(random.integers(4, 12))
        text = " ".join([*random.choice(words, size), *random.choice(["common", "other"], 2)])
        yield {"id": f"d{number:03d}", "text": text, "metadata": {"kind": str(number % 4)}}
    for number in (36, 37):  # a tie
        yield {"id": f"d{number:03d}", "text": "rain on a road", "metadata": {"kind": "0"}}


def _built(home: Path, name: str, **settings: Any) -> Index:
    return build(list(_documents()), name=name, home=home, language="none", **settings)


def _check_hits(index: Index, query: str) -> None:
    """Check order, filters, pages, `min_score` and explanations of one query."""
    match = index.search(query, index.max_doc)
    ranked = [(hit.id, hit.score) for hit in match.hits]
    order = dict(zip(index.ids(), range(len(index)), strict=True))
    assert ranked == sorted(ranked, key=lambda hit: (-hit[1], order[hit[0]])), (
        "hits are ordered by score, then by doc id"
    )
    assert match.total == len(ranked), "total is the number of hits"
    pages = [
        (hit.id, hit.score)
        for offset in range(0, len(ranked), 10)
        for hit in index.search(query, 10, offset=offset).hits
    ]
    assert _close(pages, ranked), "pages are parts of the ranking"
    kinds = {id_: index.document(id_).metadata.get("kind") for id_, _ in ranked}
    only = [hit for hit in ranked if kinds[hit[0]] == "0"]
    filtered = index.search(query, index.max_doc, filter={"field": "kind", "=": "0"})
    assert _close([(hit.id, hit.score) for hit in filtered.hits], only), (
        "a filter selects, and changes no score"
    )
    if ranked:
        least = ranked[len(ranked) // 2][1]
        above = index.search(query, index.max_doc, min_score=least)
        assert len(above.hits) == sum(score >= least for _, score in ranked), "min_score selects"
    for id_, score in ranked[::4]:
        parts = _sum(index.explain(query, id_))
        assert np.isclose(parts, score, rtol=1e-3, atol=1e-5), (
            "the parts of an explanation add up to the score"
        )


def _close(one: list[tuple[str, float]], other: list[tuple[str, float]]) -> bool:
    same = [id_ for id_, _ in one] == [id_ for id_, _ in other]
    return same and np.allclose([s for _, s in one], [s for _, s in other], rtol=1e-5)


def _sum(explanation: Explanation) -> float:
    names = ("lexical", "coverage", "latent", "expansion", "undivided", "passage")
    parts = (getattr(explanation, name) for name in names)
    return float(sum(part.value for part in parts if part is not None))


def _check_writes(index: Index) -> None:
    """Check searches after documents are added, replaced and deleted."""
    before = index.snapshot()
    earlier = [before.scores(query) for query in _QUERIES]
    index.add([{"id": f"later{n}", "text": _TOPICS[n % 3], "metadata": {}} for n in range(6)])
    replaced = Document(id="d004", text="road and rain")
    index.write([replaced], deletes=["d000", "later1"])
    with closing(open_index(index.path.parent)) as again:
        for query, scores in zip(_QUERIES, earlier, strict=True):
            match = index.search(query, index.max_doc)
            assert not {hit.id for hit in match.hits} & {"d000", "later1"}, "deleted is not found"
            assert np.array_equal(again.scores(query), index.scores(query)), (
                "an index opened again has the same scores"
            )
            assert np.array_equal(before.scores(query), scores), "a snapshot does not change"
            _check_hits(index, query)


def _check_equal_files(one: Index, other: Index) -> None:
    names = sorted(one.manifest.files)
    assert names == sorted(other.manifest.files), "equal documents build equal files"
    _, different, missing = filecmp.cmpfiles(one.path, other.path, names, shallow=False)
    assert not different + missing, f"equal documents build equal files: {different + missing}"


__all__ = ["check_kernel", "check_ranker", "check_spectral", "check_tokenizer"]
