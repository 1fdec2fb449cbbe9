"""The kernel decomposed by shards: the same files as on one machine, for any division."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from klsa_search.cluster.decomposing import decomposed
from klsa_search.cluster.work import StepResult, Work
from klsa_search.core.config import Settings
from klsa_search.core.progress import silent
from klsa_search.indexing import weighing
from klsa_search.kernels import bm25, document_kernel
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.lowrank import block_lanczos, products
from tests.cluster.dying_workers import Dying
from tests.support.worlds import counts_of, random_documents, topic_documents

from .local_workers import Here

ROWS = 64
SMALL = Settings.of_preset("default", dimensions=12, latent_dimensions=9, seed=3)


@pytest.fixture
def by_blocks(monkeypatch):
    """Have collections of a few hundred documents go the way of large ones."""
    monkeypatch.setattr(document_kernel, "EXACT", 50)
    monkeypatch.setattr(products, "ROWS", ROWS)
    monkeypatch.setattr(block_lanczos, "GROWTH", 2 * block_lanczos.WIDTH)


def world(settings=SMALL):
    return features_of([*topic_documents(20, 20, seed=5), "", "x1 x2"], settings)


def features_of(documents, settings=SMALL):
    counts = counts_of(*documents)
    Phi = bm25.document_features(
        counts.content,
        k1=settings.kernel_k1,
        b=settings.b,
        idf_power=settings.idf_power,
        pairs=settings.pairs,
    )
    return Phi, bm25.idf(counts.matrix)


def shards_of(folder, Phi, cuts):
    edges = [0, *cuts, Phi.shape[0]]
    shards = []
    for number, (first, last) in enumerate(pairwise(edges)):
        path = folder / f"shard{number}"
        path.mkdir(parents=True)
        rows = Phi[first:last]
        np.save(path / "features_starts.npy", rows.indptr.astype(np.int64))
        np.save(path / "features_columns.npy", rows.indices.astype(np.int32))
        np.save(path / "features_weights.npy", rows.data)
        shards.append(StepResult(path))
    return shards, np.diff(edges).tolist()


def plain(folder, Phi, idf, settings=SMALL):
    folder.mkdir()
    kernel = DocumentKernel.of(Phi, centred=settings.centred, normalised=settings.normalised)
    weights = idf**settings.idf_power
    spectrum = weighing.write_sparse(folder, kernel, weights, settings, silent)
    return files_of(folder), (spectrum.residual, spectrum.gap, spectrum.trace)


def by_shards(folder, Phi, idf, cuts, settings=SMALL, workers=None):
    shards, sizes = shards_of(folder / "input", Phi, cuts)
    work = Work(folder / "work", workers or Here())
    return ask(work, shards, sizes, Phi, idf, settings)


def ask(work, shards, sizes, Phi, idf, settings=SMALL):
    made = decomposed(
        work,
        shards,
        settings=settings,
        documents=sizes,
        columns=Phi.shape[1],
        term_weights=idf**settings.idf_power,
        progress=silent,
    )
    return files_of(made.files.path), (made.residual, made.gap, made.trace)


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_same(one, other):
    assert one[0].keys() == other[0].keys()
    assert [name for name in one[0] if one[0][name] != other[0][name]] == []
    assert one[1] == other[1]


@pytest.mark.long
@pytest.mark.parametrize("cuts", [pytest.param([], marks=pytest.mark.long), [64, 64, 384]])
def test_large_collections(tmp_path, by_blocks, cuts):
    Phi, idf = world()
    assert_same(by_shards(tmp_path, Phi, idf, cuts), plain(tmp_path / "plain", Phi, idf))


@pytest.mark.parametrize("cuts", [[], [128], [0, 128]])
def test_small_collections(tmp_path, cuts):
    Phi, idf = features_of(random_documents(200, 80))
    assert_same(by_shards(tmp_path, Phi, idf, cuts), plain(tmp_path / "plain", Phi, idf))


@pytest.mark.parametrize("settings", [{"centred": False}, {"normalised": False, "pairs": 0.0}])
def test_other_kernels(tmp_path, by_blocks, settings):
    settings = SMALL.model_copy(update=settings)
    Phi, idf = world(settings)
    assert_same(
        by_shards(tmp_path, Phi, idf, [256], settings),
        plain(tmp_path / "plain", Phi, idf, settings),
    )


@pytest.mark.parametrize("documents", [[], [""], ["a b", "", "a b"]])
def test_collections_without_contrast(tmp_path, documents):
    Phi, idf = features_of(documents)
    cuts = [0] * bool(documents)
    assert_same(by_shards(tmp_path, Phi, idf, cuts), plain(tmp_path / "plain", Phi, idf))


def test_a_block_that_loses_rank(tmp_path, by_blocks):
    kinds = random_documents(12, 900, seed=2)
    Phi, idf = features_of([kinds[number % 12] for number in range(300)])
    assert_same(by_shards(tmp_path, Phi, idf, [256]), plain(tmp_path / "plain", Phi, idf))


@pytest.mark.long
def test_however_often_it_is_stopped_it_goes_on(tmp_path, by_blocks):
    Phi, idf = world()
    shards, sizes = shards_of(tmp_path / "input", Phi, [192])
    stops = 0
    while True:
        try:
            made = ask(Work(tmp_path / "work", Dying(7)), shards, sizes, Phi, idf)
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops > 10
    assert_same(made, plain(tmp_path / "plain", Phi, idf))
    assert_same(made, ask(Work(tmp_path / "work", Dying(0)), shards, sizes, Phi, idf))


def test_what_no_step_reads_any_more_is_gone(tmp_path, by_blocks):
    Phi, idf = world()
    by_shards(tmp_path, Phi, idf, [192])
    left = {path.parent.name.split("-")[0] for path in (tmp_path / "work").glob("*/*.npy")}
    assert left == {"joined", "whole", "scaled"}
