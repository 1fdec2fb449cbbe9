"""Searches and writes with embedders, and without them when they fail."""

import threading

import numpy as np
import pytest

import klsa_search as klsa
from klsa_search.collection.vectors import quantised, vectors_of
from klsa_search.embedding import model
from klsa_search.embedding.model import CheckedEmbedder
from klsa_search.errors import EmbedderFailed, QueryError
from klsa_search.indexing import embed
from klsa_search.search import models
from klsa_search.search.index import open_index
from klsa_search.service.admission import Writes
from klsa_search.service.open_indexes import OpenIndexes
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.embedders import Meanings
from tests.support.processes import run_python

DOCUMENTS = [
    {"id": "a", "title": "Automobile", "text": "An automobile needs care."},
    {"id": "b", "title": "Street", "text": "The street is long."},
    {"id": "c", "title": "Valve", "text": "A valve opens."},
    {"id": "d", "title": "Rain", "text": "Rain again, and care."},
]


@pytest.fixture(
    scope="module",
    params=[{}, pytest.param({"partitions": 2, "workers": 1}, marks=pytest.mark.slow)],
    ids=["one", "two"],
)
def built(tmp_path_factory, request):
    home = tmp_path_factory.mktemp("home")
    klsa.build(DOCUMENTS, name="cars", home=home, dimensions=2, **request.param).close()
    embed(home / "cars", space="m", embedder=Meanings()).index.close()
    return home / "cars"


@pytest.fixture
def path(built, tmp_path):
    import shutil

    return shutil.copytree(built, tmp_path / "home" / "cars")


def ids(results):
    return [hit.id for hit in results]


def test_a_query_finds_what_it_means(path):
    embedder = Meanings()
    with open_index(path, embedders={"m": embedder}) as index, open_index(path) as plain:
        assert not plain.search("car", spelling="off").hits
        found = index.search("car", spelling="off")  # or care is searched, too
        assert found[0].id == "a"
        assert found.warnings == ()
        vector = {"m": Meanings().embed(["car"], "query")[0]}
        given = plain.search("car", vector=vector, spelling="off")
        assert (found.hits, found.total) == (given.hits, given.total)
        assert not index.search("car", vector={}, spelling="off").hits
        assert embedder.calls == [(["car"], "query")]
        doc_ids, scores = index.rank("car", k=1)
        assert (index.ids(doc_ids), scores.tolist()) == (["a"], [found[0].score])
        (many,) = index.rank_many(["car"], k=1)
        assert many[0].tolist() == doc_ids.tolist()
        assert index.explain("car", "a", spelling="off").score == pytest.approx(found[0].score)
        assert len(embedder.calls) == 1  # the same query is embedded once
        assert not index.is_quick("care")
        assert plain.is_quick("care") == (len(plain.partitions) == 1)


def test_without_a_space_or_words_nothing_is_embedded(path, tmp_path):
    embedder = Meanings()
    with open_index(path, embedders={"other": embedder, "m": embedder}) as index:
        assert not index.search(" ").hits
        assert index.search("c").warnings == ()
    klsa.build(DOCUMENTS, name="plain", home=tmp_path, dimensions=2).close()
    with open_index(tmp_path / "plain", embedders={"m": embedder}) as index:
        embedder.calls.clear()
        assert index.search("care").warnings == ()
        index.add([{"id": "e", "text": "A street."}])
        assert index.is_quick("care")
    assert embedder.calls == []


def hang(vectors):
    threading.Event().wait(5)
    return vectors


def fail(vectors):
    raise ConnectionError("is down")


FAULTS = {
    "hangs": hang,
    "raises": fail,
}
"""`tests/embedding/test_checked.py` has all wrong answers."""


@pytest.mark.parametrize("fault", FAULTS)
def test_searches_and_writes_go_on_without_an_embedder_that_fails(path, fault, monkeypatch):
    monkeypatch.setattr(model, "QUERY_SECONDS", 0.05)
    monkeypatch.setattr(model, "BATCH_SECONDS", 0.05)
    embedder = CheckedEmbedder(Meanings(fault=FAULTS[fault]))
    with open_index(path, embedders={"m": embedder}) as index, open_index(path) as plain:
        for query in ("care", "street care", "automobile", "care", "rain"):
            found = index.search(query)
            assert found.hits == plain.search(query).hits
            (warning,) = found.warnings
            assert warning.startswith("ranked by words only: embedder `meanings` ")
        with pytest.raises(EmbedderFailed):
            index.rank("care")
        result = index.write([klsa.Document(id="e", text="A car."), klsa.Document(id="f")])
        (warned,) = result.warnings  # the other has no text
        assert (warned.id, warned.field) == ("e", "_vectors")
        assert "is stored without a vector in `m`: embedder `meanings` " in warned.message
        assert not vectors_of(index.document("e"))
        assert index.patch("a", {"text": "A car."}).warnings
        assert not vectors_of(index.document("a"))  # that of another text
    assert embed(path, space="m", embedder=Meanings()).documents == 2


def test_a_write_waits_for_vectors_for_a_limited_time(path, monkeypatch):
    monkeypatch.setattr(models, "WRITE_SECONDS", 0.05)
    monkeypatch.setattr(models, "BATCH", 1)
    hanging = Meanings()
    hanging.fault = lambda vectors: hang(vectors) if len(hanging.texts) > 1 else vectors
    with open_index(path, embedders={"m": hanging}) as index:
        result = index.write([klsa.Document(id=str(n), text=f"Car {n}") for n in range(9)])
        assert {warning.id for warning in result.warnings} >= set("12345678")
        assert result.added == 9
    calls = CheckedEmbedder(Meanings(fault=fail))
    for _ in range(4):
        with pytest.raises(EmbedderFailed):
            calls.embed(["car"], "document")
    with pytest.raises(EmbedderFailed, match="is down"):  # those of queries are counted apart
        calls.embed(["car"], "query")


def test_an_embedder_of_another_dimension_than_the_index_changes_nothing(path):
    given = [{"id": "g", "text": "Given.", "_vectors": {"own": [1.0, 2.0]}}]
    with open_index(path) as index:
        index.add(given)
    with open_index(path, embedders={"own": Meanings()}) as index:
        found = index.search("care")
        assert "vectors of 5 values, and the vectors of the index have 2" in found.warnings[0]
        assert len(found) == 2


def test_documents_get_vectors_when_they_are_written(path):
    embedder = Meanings()
    with open_index(path, embedders={"m": embedder}) as index:
        index.add(
            [
                {"id": "e", "text": "A car."},
                {"id": "f", "text": "A road.", "_vectors": {"m": [0, 0, 0, 0, 1]}},
            ]
        )
        assert embedder.texts == ["A car."]
        expected = quantised(Meanings().embed(["A car."], "document"))
        np.testing.assert_array_equal(vectors_of(index.document("e"))["m"], expected)
        assert vectors_of(index.document("f"))["m"].tolist() == [[0, 0, 0, 0, 127]]
        assert set(ids(index.search("automobile"))) >= {"a", "e"}
        assert index.patch("e", {"text": "A road."}).warnings == ()
        expected = quantised(Meanings().embed(["A road."], "document"))
        np.testing.assert_array_equal(vectors_of(index.document("e"))["m"], expected)
        count = len(embedder.texts)
        index.patch("e", {"year": 2024})
        np.testing.assert_array_equal(vectors_of(index.document("e"))["m"], expected)
        assert len(embedder.texts) == count
        changed = [{**each, "text": each["text"] + " Car."} for each in DOCUMENTS[:1]]
        index.sync([*changed, *DOCUMENTS[1:]], max_delete=10)
        expected = quantised(
            Meanings().embed(["Automobile\nAn automobile needs care. Car."], "document")
        )
        np.testing.assert_array_equal(vectors_of(index.document("a"))["m"], expected)


@pytest.mark.parametrize("is_patch", [False, True])
def test_no_vector_of_a_replaced_model_is_written(path, is_patch):
    """The model is replaced after the vectors of a write were computed."""

    class Replaced(Meanings):
        def embed(self, texts, kind):
            vectors = super().embed(texts, kind)
            if kind == "document" and not self.replaced:
                self.replaced = True
                embed(path, space="m", embedder=Meanings("meanings-2"), replace=True).index.close()
            return vectors

    embedder = Replaced()
    embedder.replaced = False
    with open_index(path, embedders={"m": embedder}) as index:
        new = {"id": "e", "title": "", "text": "The road of a car."}
        if is_patch:
            written = index.patch("a", {"text": new["text"]})
        else:
            written = index.write([klsa.Document(**new)])
        assert embedder.replaced
        (warning,) = written.warnings
        assert "were computed by another model" in warning.message
        assert vectors_of(index.document("a" if is_patch else "e")) == {}
        assert vectors_of(index.document("b"))


def test_passages_have_vectors_of_their_own(tmp_path):
    texts = ("Car", "Street", "Valve")
    text = "\n\n".join(" ".join(f"{word} {n} here." for n in range(9)) for word in texts)
    documents = [{"id": "long", "text": text}, {"id": "short", "text": "Rain."}]
    klsa.build(documents, name="long", home=tmp_path, dimensions=1, passages=20).close()
    embed(tmp_path / "long", space="m", embedder=Meanings()).index.close()
    with open_index(tmp_path / "long", embedders={"m": Meanings()}) as index:
        best = index.search("road", group="passage")[0]
        assert "Street" in best.text
        index.add([{"id": "later", "text": text.replace("Car", "Pump")}])
        rows = vectors_of(index.document("later"))["m"]
        assert len(rows) == len(vectors_of(index.document("long"))["m"]) > 1


def test_over_http_and_in_a_restricted_view(path):
    def opener(path):
        return open_index(path, embedders={"m": Meanings()})

    with OpenIndexes(path.parent, interval=0, opener=opener) as open_indexes:
        client = AppClient(app_of_indexes(open_indexes, writes=Writes()))
        answer = client.get("/search?q=car").json()
        assert answer["hits"][0]["id"] == "a"
        assert "warnings" not in answer
        client.put("/indexes/cars/documents/e", json={"text": "A pump."})
        assert client.get("/search?q=valve&k=2").json()["hits"][1]["id"] == "e"

    def failing(path):
        return open_index(path, embedders={"m": Meanings(fault=fail)})

    with OpenIndexes(path.parent, interval=0, opener=failing) as open_indexes:
        client = AppClient(app_of_indexes(open_indexes, writes=Writes()))
        assert "is down" in client.get("/search?q=care").json()["warnings"][0]
        answer = client.put("/indexes/cars/documents/f", json={"text": "A pump."}).json()
        assert answer["warnings"][0]["field"] == "_vectors"


@pytest.mark.slow
def test_nothing_is_imported_without_models(path):

    program = (
        "import sys; from klsa_search.search.index import open_index\n"
        f"with open_index({str(path)!r}) as index: index.search('care')\n"
        "print(*[name for name in sys.modules if name.startswith('klsa_search.embedding')])"
    )
    done = run_python(program, check=True)
    assert "klsa_search.embedding.opening" not in done.stdout.split()


def test_a_vector_that_is_given_is_checked(path):
    with open_index(path, embedders={"m": Meanings()}) as index, pytest.raises(QueryError):
        index.search("car", vector={"m": [1.0]})
