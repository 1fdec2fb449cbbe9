"""Folding in depends on the build and the documents alone, and K equals the reference."""

from collections import Counter
from contextlib import closing
from dataclasses import fields
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from klsa_search import build
from klsa_search.collection import Document, open_collection
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.delta.segment import DeltaSegment, merge
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.lowrank.sparse_expansion import (
    DOCUMENT_SCALARS,
    LEVELS,
    SegmentedExpansion,
    unpack_rows,
)
from tests.delta.worlds import PLAIN, documents, epoch_of, random_world

BASE = 70


@pytest.fixture(scope="module")
def world():
    """90 documents of 60 terms; the last hold terms that no other does."""
    known = random_world(90)
    return known[:85] + [
        Document(id=each.id, title=f"new{number % 3}", text=f"{each.text} other{number}")
        for number, each in enumerate(known[85:])
    ]


@pytest.fixture(scope="module")
def epoch(world, tmp_path_factory):
    index = build(world[:BASE], name="base", home=tmp_path_factory.mktemp("fold"), **PLAIN)
    yield epoch_of(index)
    index.close()


@pytest.fixture(scope="module")
def segment(epoch, world):
    return DeltaBuilder(epoch).fold(world[BASE:])


def continued(epoch, segments):
    folding = DeltaBuilder(epoch)
    for segment in segments:
        folding.add_segment(segment)
    return folding


def same(one, other):
    for field in fields(DeltaSegment):
        first, second = (np.asarray(getattr(each, field.name)) for each in (one, other))
        assert first.dtype == second.dtype, field.name
        assert np.array_equal(first, second), field.name


def reference(epoch, segment):
    """K over features and facts as they are kept, of the base's documents and of the new ones."""
    new = unpack_rows(
        segment.feature_starts, segment.features, facts(segment)[:, 0], len(epoch.expansion.mean)
    )
    old = SegmentedExpansion([epoch.expansion]).kernel()
    kept = np.concatenate((epoch.expansion.document_scalars, facts(segment))).astype(np.float64)
    features = sparse.csr_array(sparse.vstack((old.features, new), format="csr"))
    kernel = DocumentKernel(
        features.astype(np.float64), kept[:, 1], epoch.expansion.mean.astype(np.float64)
    )
    vars(kernel)["towards_mean"] = kept[:, 2]  # that of the features before they were rounded
    return kernel


def near(values, exact, step):
    """Rounded to steps, and at least to one."""
    return bool((np.abs(values - np.maximum(exact, step)) < 0.501 * step + 1e-5).all())


def facts(segment):
    return segment.document_vectors.view(np.float32)[:, -DOCUMENT_SCALARS:]


def entries(segment, document):
    """Positions and values of a row."""
    row = segment.rows[document]
    row = row[row > 0]
    return (row >> 8).astype(int), (row & LEVELS) * segment.scales[document, 0].astype(float)


@given(st.lists(st.integers(0, 20), max_size=5), st.booleans())
def test_the_division_of_documents_does_not_matter(epoch, world, segment, cuts, anew):
    """Among calls, among foldings that go on where one left off, and among segments."""
    folding, parts = DeltaBuilder(epoch), []
    bounds = [0, *sorted(cuts), 20]
    for first, after in pairwise(bounds):
        if anew:
            folding = continued(epoch, [merge(parts)] if len(parts) > 2 else parts)
        parts.append(folding.fold(world[BASE + first : BASE + after]))
        assert folding.after == parts[-1].after
    same(merge(parts), segment)
    if len(parts) > 2:
        same(merge([merge(parts[:2]), *parts[2:]]), segment)


def test_documents_folded_two_by_two_are_the_same(epoch, world, segment, monkeypatch):
    monkeypatch.setattr("klsa_search.delta.folding.LINK_BATCH", 2)
    monkeypatch.setattr("klsa_search.delta.folding.TASK_DOCUMENTS", 1)
    same(DeltaBuilder(epoch).fold(world[BASE:]), segment)


def test_rows_are_the_strongest_entries_of_k(epoch, segment):
    kernel = reference(epoch, segment)
    K = kernel.rows(np.arange(BASE, len(kernel)))
    together = (kernel.features[BASE:] @ kernel.features.T).toarray() > 0
    for d in range(len(segment)):
        row = K[d, : BASE + d].copy()
        places, values = entries(segment, d)
        assert near(values, row[places], segment.scales[d, 0])
        # What shares no feature is not looked for: by what both lack, it may be a little alike.
        row[~together[d, : len(row)]] = 0
        strongest = np.sort(row[row > 0])[::-1][: segment.rows.shape[1]]
        assert np.allclose(np.sort(row[places])[::-1], strongest, atol=1e-4)
        assert (np.diff(values) <= 0).all()
        assert segment.scales[d, 1] == pytest.approx(K[d, BASE + d], rel=0.01)


def test_reverse_entries_are_those_that_the_row_of_the_other_would_have(epoch, segment):
    strong = []
    for d in range(len(segment)):
        for position, value in zip(*entries(segment, d), strict=True):
            old = position < BASE
            of = epoch.expansion if old else segment
            at = position if old else position - segment.first
            weakest = int(of.rows[at, -1] & LEVELS) * of.scales[at, 0]
            if value >= weakest + segment.scales[d, 0]:
                strong.append((position, segment.first + d))
            elif value >= weakest - segment.scales[d, 0]:  # within rounding
                strong.append(None)
    found = [tuple(each) for each in segment.reverse.tolist()]
    assert found == sorted(found)
    assert set(strong) - {None} <= set(found)
    assert len(found) <= len(strong)
    values = {
        (position, segment.first + d): value
        for d in range(len(segment))
        for position, value in zip(*entries(segment, d), strict=True)
    }
    kept = [values[pair] for pair in found]
    assert np.allclose(kept, segment.reverse_values, atol=segment.scales[:, 0].max())


def test_a_document_of_the_base_gets_the_features_it_has(epoch, world):
    again = DeltaBuilder(epoch).fold(world[:BASE])
    assert again.features.tolist() == epoch.expansion.features.tolist()
    assert again.feature_starts.tolist() == epoch.expansion.starts.tolist()
    assert np.allclose(facts(again), epoch.expansion.document_scalars, rtol=1e-5, atol=1e-6)
    assert np.allclose(again.scales[:, 1], epoch.expansion.scales[:, 1], rtol=1e-5)


def test_a_document_of_the_base_lies_where_it_did(epoch, world):
    """By its terms alone: the pairs of a document are left out."""
    again = DeltaBuilder(epoch).fold(world[:BASE])
    m = epoch.dimensions
    places, own = (
        vectors[:, :m].astype(float)
        for vectors in (again.document_vectors, epoch.expansion.document_vectors)
    )
    lengths = np.linalg.norm(places, axis=1) * np.linalg.norm(own, axis=1)
    assert ((places * own).sum(axis=1) / lengths).mean() > 0.9


def test_counts_and_codes_are_those_of_the_texts(epoch, world, segment):
    terms = [*epoch.vocabulary.terms, *segment.new_terms]
    fields = epoch.settings.searched_fields
    expected = [
        dict(Counter([*each.title.split() * fields.weights[0], *each.text.split()]))
        for each in world[BASE:]
    ]
    codes = segment.forward_codes, segment.forward_starts
    forward = epoch.forward.extended(codes, len(terms))
    coded = forward.counts(np.arange(BASE, BASE + len(segment)))
    for d, counts in enumerate(expected):
        row = coded[[d]]
        assert {terms[i]: f for i, f in zip(row.indices, row.data, strict=True)} == counts
    assert segment.lengths.tolist() == [sum(counts.values()) for counts in expected]
    assert segment.new_terms == [
        "new0",
        "other0",
        "new1",
        "other1",
        "new2",
        "other2",
        "other3",
        "other4",
    ]


@pytest.mark.parametrize("text", ["", "unheard of", "t00"])
def test_a_document_of_nothing_known_is_like_nothing(epoch, text):
    segment = DeltaBuilder(epoch).fold(documents([text]))
    like = text == "t00"
    assert bool(segment.rows.any()) == bool(len(segment.reverse)) == like
    assert bool(facts(segment)[0, 1]) == like
    assert segment.lengths.tolist() == [len(text.split())]
    again = continued(epoch, [segment]).fold(documents(["t00 t01", ""]))
    assert bool((entries(again, 0)[0] == segment.first).any()) == like


def test_no_documents_are_an_empty_segment(epoch):
    segment = DeltaBuilder(epoch).fold([])
    assert (len(segment), segment.first, segment.after) == (0, BASE, BASE)
    same(merge([segment, segment]), segment)


def test_a_segment_that_does_not_follow_is_refused(epoch, world, segment):
    folding = continued(epoch, [segment])
    with pytest.raises(ValueError, match="a segment at 70, where 90 is next"):
        continued(epoch, [segment, segment])
    behind = folding.fold(world[:1])
    with pytest.raises(ValueError, match="a segment at 70 follows one that ends at 91"):
        merge([behind, segment])


@pytest.mark.parametrize(
    "changes",
    [
        {"pairs": 0.0},
        {"centred": False},
        {"normalised": False},
        {"idf_power": 0.5, "b": 0.0},
        {"k1": 0.0, "kernel_k1": 0.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [1, 30])
def test_whatever_the_settings_rows_are_those_of_k(world, tmp_path, changes, size):
    with_changes = build(world[:size], name="base", home=tmp_path, **PLAIN, **changes)
    epoch = epoch_of(with_changes)
    segment = DeltaBuilder(epoch).fold(world[30:50])
    kernel = reference(epoch, segment)
    K = kernel.rows(np.arange(size, len(kernel)))
    for d in range(len(segment)):
        places, values = entries(segment, d)
        assert near(values, K[d, places], segment.scales[d, 0])
    with_changes.close()


def test_a_rewritten_document_has_the_features_of_the_build(tmp_path):
    """With titles, common words and pairs, by the default settings."""
    texts = list(islice(open_collection("python-docs").documents(), 300))
    with closing(build(texts, name="docs", home=tmp_path)) as index:
        epoch, cut = epoch_of(index), index.arrays.sparse_expansion.built
        segment = DeltaBuilder(epoch).fold(texts[:60])
        for document in range(60):
            built = cut.features[cut.starts[document] : cut.starts[document + 1]]
            first, after = segment.feature_starts[document : document + 2]
            again = segment.features[first:after]
            assert np.array_equal(np.sort(again >> 8), np.sort(built >> 8))
            # Of a value halfway between two levels rounding decides.
            assert np.abs(np.sort(again).astype(np.int64) - np.sort(built)).max(initial=0) <= 1
        assert np.array_equal(segment.lengths, index.arrays.lengths[:60])
        facts = segment.document_vectors.view(np.float32)[:, -DOCUMENT_SCALARS:]
        assert facts == pytest.approx(cut.document_scalars[:60], rel=1e-4, abs=1e-6)


def test_documents_that_are_all_alike_can_be_added(tmp_path):
    """If all documents are alike, no candidate gets a sum above 0."""
    alike = [{"id": f"d{number}", "text": "word01 word02 word03"} for number in range(40)]
    with build(alike, name="alike", home=tmp_path) as index:
        for batch in range(3):
            index.add([{**each, "id": f"{batch}-{each['id']}"} for each in alike])
        documents, _ = index.rank("word01", 200)
        assert len(documents) == 160
