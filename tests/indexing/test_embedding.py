"""Vectors of an index are computed once, in steps that survive an interruption."""

import sqlite3

import numpy as np
import pytest

import klsa_search as klsa
from klsa_search.collection.vectors import quantised, vectors_of
from klsa_search.errors import EmbedderFailed, IndexBusy, SettingsError, StoreError
from klsa_search.indexing import computed_vectors, embed, refit
from klsa_search.search.index import open_index
from klsa_search.storage.maintenance import delete_index
from klsa_search.storage.vectors import ComputedVectors
from tests.support.embedders import Meanings

DOCUMENTS = [
    {"id": "a", "title": "Automobile", "text": "An automobile needs care."},
    {"id": "b", "title": "Street", "text": "The street is long."},
    {"id": "c", "title": "Valve", "text": "A valve opens."},
    {"id": "d", "title": "Rain", "text": "Rain again."},
    {"id": "e", "title": " ", "text": ""},
]


def build(home, documents=DOCUMENTS, **settings):
    klsa.build(documents, name="cars", home=home, dimensions=2, **settings).close()
    return home / "cars"


@pytest.fixture
def path(tmp_path):
    return build(tmp_path)


def texts_of(index):
    return {each.id: f"{each.title}\n{each.text}" for each in index.live_documents() if each.text}


def check(index, space="m", embedder=None):
    """Assert that each document with text has the vectors of its text."""
    for id_, text in texts_of(index).items():
        expected = quantised((embedder or Meanings()).embed([text], "document"))
        np.testing.assert_array_equal(vectors_of(index.document(id_))[space], expected)
    assert not vectors_of(index.document("e"))


def test_every_document_with_text_gets_a_vector(path):
    embedder, phases = Meanings(), []
    done = embed(path, space="m", embedder=embedder, progress=lambda *step: phases.append(step))
    assert (done.documents, done.index.generation) == (4, "000002")
    check(done.index)
    (entry,) = done.index.manifest.vectors
    assert (entry.name, entry.dimension, entry.fingerprint) == ("m", 5, "meanings-1")
    assert phases[0] == ("vectors", 5, 5)
    assert not (path / "EMBEDDINGS").exists()
    done.index.close()
    again = embed(path, space="m", embedder=embedder)
    assert (again.documents, again.index.generation) == (0, "000002")
    assert len(embedder.texts) == 4
    again.index.close()


def test_only_documents_without_vectors_are_computed(path):
    embed(path, space="m", embedder=Meanings()).index.close()
    with open_index(path) as index:
        index.add([{"id": "f", "text": "A street for each car."}])
    embedder = Meanings()
    done = embed(path, space="m", embedder=embedder)
    assert done.documents == 1
    assert embedder.texts == ["A street for each car."]
    check_f = vectors_of(done.index.document("f"))["m"]
    np.testing.assert_array_equal(check_f, quantised([1.1, 1.1, 0.1, 0.1, 0.1]))
    done.index.close()


def test_given_vectors_stay(tmp_path):
    given = [{**DOCUMENTS[0], "_vectors": {"m": [0, 0, 0, 0, 1.0]}}, *DOCUMENTS[1:]]
    done = embed(build(tmp_path, given), space="m", embedder=Meanings())
    assert done.documents == 3
    assert vectors_of(done.index.document("a"))["m"].tolist() == [[0, 0, 0, 0, 127]]
    done.index.close()


def test_an_interrupted_computation_continues(path, monkeypatch):
    def stop(*_, **__):
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("klsa_search.indexing.rewrite.build_divided", stop)
        with pytest.raises(RuntimeError, match="killed"):
            embed(path, space="m", embedder=Meanings())
    assert (path / "EMBEDDINGS").exists()
    with open_index(path) as index:
        assert (index.generation, index.manifest.vectors) == ("000001", [])
    again = Meanings()
    done = embed(path, space="m", embedder=again)
    assert again.texts == []  # all were computed
    check(done.index)
    assert not (path / "EMBEDDINGS").exists()
    done.index.close()


def test_vectors_computed_before_a_failure_are_reused(path, monkeypatch):
    monkeypatch.setattr(computed_vectors, "BATCH", 1)
    failing = Meanings()
    failing.fault = lambda vectors: vectors if len(failing.calls) < 3 else vectors * np.nan
    with pytest.raises(EmbedderFailed, match="NaN"):
        embed(path, space="m", embedder=failing)
    with open_index(path) as index:
        assert (index.generation, index.manifest.vectors) == ("000001", [])
    embedder = Meanings()
    embed(path, space="m", embedder=embedder).index.close()
    assert len(embedder.texts) == 2
    other = Meanings("meanings-2")  # whose vectors are its own
    embed(path, space="other", embedder=other).index.close()
    assert len(other.texts) == 4


def test_a_damaged_work_file_is_computed_again(path):
    (path / "EMBEDDINGS").write_bytes(b"no database" * 1000)
    done = embed(path, space="m", embedder=Meanings())
    check(done.index)
    done.index.close()


def test_two_computations_exclude_each_other_and_a_deletion_removes_the_file(path):
    computed = ComputedVectors(path)
    with pytest.raises(IndexBusy, match="being computed by another process"):
        embed(path, space="m", embedder=Meanings())
    computed.close()
    sqlite3.connect(path / "EMBEDDINGS").close()
    assert delete_index(path) == []
    assert not path.exists()


def test_a_work_file_that_cannot_be_opened_is_not_another_computation(path):
    (path / "EMBEDDINGS").mkdir()
    with pytest.raises(StoreError, match=r"cannot use .*EMBEDDINGS.*unable to open"):
        ComputedVectors(path)


def test_another_model_is_refused_or_replaces_all_vectors(path):
    embed(path, space="m", embedder=Meanings()).index.close()
    other = Meanings("meanings-2", dimension=7)
    with pytest.raises(SettingsError, match="computed by another model than `meanings`"):
        embed(path, space="m", embedder=other)
    with pytest.raises(SettingsError, match="--replace"):
        open_index(path, embedders={"m": other})
    done = embed(path, space="m", embedder=other, replace=True)
    assert done.documents == 4
    check(done.index, embedder=Meanings(dimension=7))
    done.index.close()
    assert embed(path, space="m", embedder=other, replace=True).documents == 0


def test_documents_written_meanwhile_keep_no_vectors_of_a_replaced_model(path, monkeypatch):
    embed(path, space="m", embedder=Meanings()).index.close()
    other = Meanings("meanings-2", dimension=7)

    def write(vectors):
        other.fault = None
        with open_index(path, embedders={"m": Meanings()}) as index:
            index.add([{"id": "f", "text": "A street for each car."}])
        return vectors

    other.fault = write
    done = embed(path, space="m", embedder=other, replace=True)
    assert done.index.document("f").text
    assert not vectors_of(done.index.document("f"))
    done.index.close()
    assert embed(path, space="m", embedder=other).documents == 1


def test_passages_have_vectors_of_their_own(tmp_path):
    text = " ".join(f"Car {n} is here." for n in range(30)) + "\n\nA street. " * 3
    documents = [{"id": "long", "text": text}, {"id": "short", "text": "A valve."}]
    path = build(tmp_path, documents, passages=20)
    embedder = Meanings()
    done = embed(path, space="m", embedder=embedder)
    assert done.documents == 2
    assert done.index.passage_count == len(embedder.texts)
    rows = vectors_of(done.index.document("long"))["m"]
    assert len(rows) == done.index.passage_count - 1
    np.testing.assert_array_equal(
        rows, quantised(Meanings().embed(embedder_order(done.index), "document"))
    )
    done.index.close()
    refit(path, passages="off", embedders={"m": embedder}).close()
    with open_index(path) as index:  # one for the whole document
        assert len(vectors_of(index.document("long"))["m"]) == 1


def embedder_order(index):
    hits = index.search("car street", 100, group="passage").hits
    spans = sorted({hit.span for hit in hits if hit.document_id == "long"})
    whole = index.document("long").text
    return [whole[begin:end] for begin, end in spans]


def test_a_refit_computes_missing_vectors(path):
    refit(path, embedders={"m": Meanings()}).close()
    with open_index(path) as index:
        check(index)
        assert index.manifest.vectors[0].fingerprint == "meanings-1"
    refit(path).close()  # keeps them
    with open_index(path, embedders={"m": Meanings()}) as index:
        check(index)
        assert index.manifest.vectors[0].fingerprint == "meanings-1"
