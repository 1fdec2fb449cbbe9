"""KlsaEngine over a built index: blocks of any size, and scores against the exact ones."""

from dataclasses import replace

import numpy as np
import pytest

from klsa_search import build
from klsa_search.kernels.postings import Postings, Segments
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.engine.engine import KlsaEngine
from klsa_search.search.rankers.klsa import klsa_params
from tests.support.worlds import as_if_large, random_documents

from .segmenting import matrix_of
from .single_query import top_of


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """6,000 documents; some terms are in nearly all, more than are looked at one by one."""
    records = [
        {"id": str(number), "text": text}
        for number, text in enumerate(random_documents(6000, 60, seed=3))
    ]
    options = {"language": "none"}
    home = tmp_path_factory.mktemp("engine")
    with as_if_large():
        opened = build(records, name="many", home=home, **options)
    yield opened
    opened.close()


def in_blocks(postings, bits):
    """The same postings in blocks of another size."""
    return Postings.of(matrix_of(postings), np.ones(postings.size), postings.k1, block_bits=bits)


QUERIES = [f"t{a:02d} t{a + b:02d} t00" for a in range(1, 40, 4) for b in (1, 7, 13)]


@pytest.mark.parametrize("bits", [6, 8, 11])
def test_blocks_of_any_size_give_the_same_answers(index, bits):
    snapshot = index.arrays
    postings = snapshot.query_kernel.postings
    engine = KlsaEngine(
        replace(snapshot.query_kernel, postings=Segments.single(in_blocks(postings, bits))),
        snapshot.sparse_expansion,
        snapshot.latent_dimensions,
        snapshot.neighbour_count,
        small=False,
    )
    params = klsa_params(snapshot, index.parameters())
    for query in QUERIES:
        terms = [snapshot.vocabulary.numbers[term] for term in query.split()]
        for k in (10, 1000):
            found, values, *_ = top_of(engine, terms, k, params)
            positions, scores = index.rank(query, k)
            assert np.array_equal(found, positions)
            assert np.array_equal(values, scores)


def test_results_have_their_exact_scores(index):
    for query in QUERIES:
        exact = index.scores(query)
        positions, scores = index.rank(query, 10)
        assert np.abs(scores - exact[positions]).max() < 0.02 * exact.max()
        best = set(largest_entries(exact, 10)[0].tolist())
        assert len(best & set(positions.tolist())) >= 7
