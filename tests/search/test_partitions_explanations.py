"""Explanations of scores over partitions: their parts add up, by seeds of any partition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from klsa_search import Index, build
from klsa_search.errors import DocumentNotFound
from klsa_search.search.explain.explanation import Explanation
from klsa_search.storage.partitions import partition_of
from tests.support.worlds import topic_records


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    home = tmp_path_factory.mktemp("explained")
    with build(topic_records(300), name="three", home=home, partitions=3, workers=1) as index:
        yield index


def total(found: Explanation) -> float:
    """Return the sum of the parts of a score."""
    assert found.lexical is not None
    parts = (found.lexical, found.coverage, found.latent, found.expansion)
    return sum(part.value for part in parts if part is not None)


def test_one_document_is_explained_as_among_the_hits(three: Index) -> None:
    first, *_, last = three.search("word01 word05", 40, explain=True).hits
    for hit in (first, last):
        found = three.explain("word01 word05", hit.id)
        assert found.score == pytest.approx(hit.score, rel=1e-2)
        assert total(found) == pytest.approx(found.score, rel=1e-5)
    assert three.explain("word01 word05", first.id) == first.explanation
    with pytest.raises(DocumentNotFound):
        three.explain("word01", "nothing")
    bm25 = three.explain("word01 word05", first.id, ranker="bm25")
    assert bm25.lexical is not None
    assert bm25.lexical.value == pytest.approx(bm25.score)


def test_a_document_found_by_seeds_of_other_partitions_alone_is_explained(three: Index) -> None:
    """No document of its partition contains a word of the query."""
    made = topic_records(120)
    seed = made[0]
    seed["text"] += " zebra"
    with build(made, name="zebra", home=three.path.parents[1], partitions=3, workers=1) as index:
        hits = index.search("zebra", 60, explain=True).hits
    found = [hit for hit in hits if partition_of(hit.id, 3) != partition_of(seed["id"], 3)]
    assert len(found) > 5
    for hit in found:
        assert hit.explanation is not None
        assert total(hit.explanation) == pytest.approx(hit.score, rel=1e-4)
