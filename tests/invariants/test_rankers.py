"""Invariants of the rankers, on built indexes."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from klsa_search import build
from klsa_search.core.parameters import ParsingSettings
from klsa_search.indexing.weighing import document_kernel
from klsa_search.kernels.weighting import TFIDF, feature_weighting, tfidf_features
from klsa_search.lowrank.eigensolver import decompose
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.lowrank.latent_space import LatentSpace
from klsa_search.search.rankers import RANKERS
from klsa_search.search.state.state import open_state
from tests.support.exact_neighbours import neighbour_graph
from tests.support.worlds import as_if_large, counts_of, random_documents, topic_documents

QUERIES = ["t03 t11", "t00", "t25 t25 t07", "t39 t38 t37 t36"]
PLAIN = {"language": "none"}
PUBLISHED = {**PLAIN, "preset": "paper"}


def records(documents):
    return [{"id": f"d{number:03d}", "text": text} for number, text in enumerate(documents)]


@pytest.fixture(scope="module")
def index(index_of):
    return index_of(records(random_documents(80, 40)), **PUBLISHED)


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    home = tmp_path_factory.mktemp("default")
    options = {"name": "random", "home": home, **PLAIN}
    opened = build(records(random_documents(80, 40)), **options)
    yield opened
    opened.close()


@pytest.mark.parametrize("query", QUERIES)
def test_alpha_0_is_bm25_to_the_bit(index, default, query):
    zero = default.scores(query, alpha=0.0)
    assert np.array_equal(zero, default.scores(query, ranker="bm25"))
    assert np.array_equal(index.scores(query, alpha=0.0), index.scores(query, ranker="bm25"))


@pytest.mark.parametrize("query", QUERIES)
def test_alpha_1_with_all_seeds_is_the_latent_kernel(index, query):
    row = index.scores(query, ranker="bm25").astype(np.float64)
    for dimensions in (None, 5):
        U = np.load(index.path / "eigenvectors.npy")[:, :dimensions].astype(np.float64)
        scores = index.scores(query, alpha=1.0, z=len(index), dimensions=dimensions)
        assert scores == pytest.approx(row @ U @ U.T, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("query", QUERIES)
def test_scores_follow_the_published_formula(index, query):
    D = np.load(index.path / "all_expansion_rows.npy")
    row = index.scores(query, ranker="bm25")
    seeds, weights = largest_entries(row, 3)
    expected = 0.4 * (weights @ D[seeds]) + 0.6 * row
    assert index.scores(query, alpha=0.4, z=3) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("query", [*QUERIES, "t03 t03 t03 t11"])
def test_lsi_is_the_inner_product_of_logarithmic_weights(index, query):
    counts = counts_of(*random_documents(80, 40))
    X = tfidf_features(counts.matrix)
    asked = np.zeros(len(counts.vocabulary))
    for term, count in Counter(query.split()).items():
        number = counts.vocabulary.numbers[term]
        asked[number] = np.log1p(count) * TFIDF.of_columns(counts.matrix)[number]
    V = np.linalg.svd(X.toarray(), full_matrices=False)[2]
    for dimensions in (5, 20):
        kept = V[:dimensions].T @ V[:dimensions]
        expected = X @ kept @ asked
        scores = index.scores(query, ranker="lsi", dimensions=dimensions)
        assert scores == pytest.approx(expected, rel=1e-3, abs=1e-3)
        lengths = np.linalg.norm(X @ V[:dimensions].T, axis=1)
        cosines = index.scores(query, ranker="lsi-cosine", dimensions=dimensions)
        assert cosines == pytest.approx(expected / lengths, rel=1e-3, abs=1e-3)


def test_rows_of_d_are_stored_up_to_a_size_and_computed_above_it(tmp_path):
    documents = records(random_documents(80, 40))
    small = build(documents, name="small", home=tmp_path, **PUBLISHED)
    with as_if_large():
        large = build(documents, name="large", home=tmp_path, **PUBLISHED)
    assert (small.path / "all_expansion_rows.npy").exists()
    assert not (large.path / "all_expansion_rows.npy").exists()
    for query in QUERIES:
        assert large.scores(query) == pytest.approx(small.scores(query), rel=1e-3, abs=1e-4)
    large.close()
    small.close()


def lengths_at_seeds(index, query, scores):
    """Length over the 20 seeds of the query kernel."""
    seeds = largest_entries(index.scores(query, ranker="bm25"), 20)[0]
    return np.linalg.norm(scores[seeds])


@pytest.mark.parametrize("query", QUERIES)
def test_every_part_of_the_default_has_length_one_over_the_seeds(default, query):
    """With the whole share given to one part, the scores have its length: 1."""
    for coverage, latent in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0)):
        scores = default.scores(query, alpha=1.0, hold_back=0.0, coverage=coverage, latent=latent)
        assert lengths_at_seeds(default, query, scores) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("query", QUERIES)
def test_the_default_is_linear_in_its_parts_and_never_negative(default, query):
    def part(coverage, latent):
        return default.scores(query, alpha=1.0, hold_back=0.0, coverage=coverage, latent=latent)

    # The expansion of the default weighs its seeds by coverage, so it is taken from the whole.
    whole = default.scores(query, alpha=1.0, hold_back=0.0)
    expansion = (whole - 0.4 * part(1.0, 0.0) - 0.2 * part(0.0, 1.0)) / 0.4
    assert lengths_at_seeds(default, query, expansion) == pytest.approx(1, rel=1e-4)
    assert (expansion > -1e-6).all()
    assert (default.scores(query) >= 0).all()


def written_out(
    index, query, *, alpha, hold_back, z, sharpness, lexical_sharpness, coverage, latent
):
    """The formula of `search/rankers/klsa.py` in float64, from postings and the exact kernel."""
    load = {path.stem: np.load(path) for path in index.path.glob("*.npy")}
    N, V = len(index), len(load["postings_starts"]) - 1
    state = open_state(index.path)
    parsed = state.query_parser.parse(query, ParsingSettings())
    terms = sorted(Counter(parsed.terms).items())
    numbers = [number for number, _ in terms]
    asked = np.array([count for _, count in terms], dtype=float)
    saturations = np.zeros((N, V), np.int64)
    for term in range(V):  # all in one block
        some = slice(load["postings_starts"][term], load["postings_starts"][term + 1])
        entries = load["postings_entries"][some].astype(np.int64)
        saturations[entries >> 16, term] = entries & 0xFFFF
    held = (saturations > 0).sum(axis=0)
    bursts = np.sqrt(N * (1 - np.exp(-load["postings_occurrences"] / N)) / held).clip(1, 2)
    w = np.log1p((N - held + 0.5) / (held + 0.5)) * bursts
    unit = (index.settings.k1 + 1) / 2**16
    impacts = unit * saturations * w
    counts, settings = counts_of(*random_documents(80, 40)), index.settings
    kernel = document_kernel(counts, settings)
    W = neighbour_graph(kernel, settings.neighbours).toarray()
    found = saturations[:, numbers]
    weights = (asked * np.rint(w[numbers] * 2**16)).astype(np.int64)
    row = unit * ((found > 0) * (1 + (found * weights >> 16))).sum(axis=1)
    best = np.argsort(-row, kind="stable")[:300]
    counting = np.zeros((N, 1))
    counting[best[row[best] > 0]] = 1
    together = (counting * impacts + 4 * W @ (counting * impacts))[:, numbers] / w[numbers]
    T = (together / (together + 1)) @ (asked * w[numbers])
    term_weights = feature_weighting(settings).of_columns(counts.matrix)
    spectrum = decompose(kernel, settings.latent_dimensions)
    space = LatentSpace.of(kernel, spectrum, settings.latent_dimensions, term_weights)
    rows = [counts.vocabulary.numbers[index.arrays.vocabulary.terms[n]] for n in numbers]
    L = space.documents @ ((asked * bursts[numbers]) @ space.terms[rows])
    c = weights[found[best[0]] > 0].sum() / weights.sum()
    alpha *= 1 - hold_back * c**3
    seeds = np.argsort(-row, kind="stable")[:z]
    seeds = seeds[row[seeds] > 0]
    weights = row[seeds] * (row[seeds] / row.max()) ** (sharpness - 1)
    if coverage:
        weights = weights * (T[seeds] / T[seeds].max()) ** 6
    E = weights @ kernel.explicit()[seeds]
    X = row * (row / row.max()) ** (lexical_sharpness - 1)
    E, T, L, X = (
        np.maximum(part, 0) / np.linalg.norm(np.maximum(part, 0)[seeds]) for part in (E, T, L, X)
    )
    share = 1 - coverage - latent
    return alpha * (share * E + coverage * T + latent * L) + (1 - alpha) * X


USUAL = {
    "alpha": 0.7,
    "hold_back": 0.7,
    "z": 20,
    "sharpness": 5.0,
    "lexical_sharpness": 8.0,
    "coverage": 0.4,
    "latent": 0.2,
}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"alpha": 0.3},
        {"hold_back": 0.0},
        {"alpha": 1.0, "hold_back": 1.0},
        {"z": 3},
        {"sharpness": 1.0},
        {"sharpness": 2.5},
        {"lexical_sharpness": 1.0},
        {"coverage": 0.0},
        {"latent": 0.0},
        {"coverage": 0.1, "latent": 0.7},
    ],
)
def test_the_default_is_its_formula(default, change):
    parameters = USUAL | change
    for query in QUERIES[::2]:
        expected = written_out(default, query, **parameters)
        # An index stores features and rows of D in 8 bits.
        error = np.abs(default.scores(query, **parameters) - expected).max()
        assert error < 0.02 * np.abs(expected).max()


def test_the_default_finds_all_that_bm25_finds(default):
    """Coverage gives every document that holds a term of the query a score above 0."""
    for query in QUERIES:
        assert (default.scores(query)[default.scores(query, ranker="bm25") > 0] > 0).all()


def test_one_document_that_stands_out_holds_the_expansion_back(tmp_path):
    """The whole length of the sharpened lexical part lies on it, so it stays first."""
    documents = records([*topic_documents(), "a0 a1 a2 unique words here"])
    index = build(documents, name="out", home=tmp_path, **PLAIN)
    assert index.rank("unique words here a0")[0][0] == len(documents) - 1
    index.close()


def test_scores_do_not_depend_on_the_order_of_documents(tmp_path):
    # Where documents tie at the z-th place the first ones are the seeds: no ties here.
    documents = records(random_documents(80, 40))
    order = np.random.default_rng(5).permutation(len(documents))
    options = {"home": tmp_path, **PLAIN}
    one = build(documents, name="one", **options)
    other = build([documents[i] for i in order], name="other", **options)
    for query, ranker in product(QUERIES, RANKERS):
        scores = one.scores(query, ranker=ranker)
        assert other.scores(query, ranker=ranker) == pytest.approx(scores[order], abs=1e-4)
    one.close()
    other.close()


def test_ties_go_by_document_order(tmp_path):
    documents = records(["wing flow", "bread oven", "wing flow", "wing flow"])
    index = build(documents, name="ties", home=tmp_path)
    for ranker in RANKERS:
        positions, scores = index.rank("wing", ranker=ranker)
        assert positions.tolist()[:3] == [0, 2, 3]
        assert len(set(scores.tolist()[:3])) == 1
        assert index.rank("wing", k=2, ranker=ranker)[0].tolist() == [0, 2]
    index.close()


def test_topics_are_found_through_their_own_words(tmp_path):
    """The point of it all: documents of a topic are found by words they do not hold."""
    documents = topic_documents()
    index = build(records(documents), name="topics", home=tmp_path, **PLAIN)
    for topic in range(4):
        word = f"{chr(ord('a') + topic)}0"
        containing_any = sum(word in text.split() for text in documents)
        assert containing_any < 12
        positions, _ = index.rank(word, k=12)
        assert {position // 12 for position in positions.tolist()} == {topic}
    index.close()
