"""Indexes in PyTerrier."""

import tarfile
import tempfile

import pytest

import klsa_search as klsa
from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError, IndexNotFound, QueryError
from klsa_search.evaluation.systems import SYSTEMS, judge_systems

pytest.importorskip(
    "pyterrier",
    reason="needs PyTerrier: pip install 'klsa-search[pyterrier]'",
    exc_type=ImportError,
)

import pandas as pd
import pyterrier as pt
from lz4.frame import LZ4FrameFile

from klsa_search.connect.pyterrier import KlsaIndex, KlsaIndexer, KlsaRetriever, KlsaTexts

pytestmark = [pytest.mark.external, pytest.mark.filterwarnings("ignore")]
CORPUS = [
    {"docno": "heat", "title": "Overheating", "text": "engines lose coolant", "year": 2021},
    {"docno": "tyre", "title": "Tyres", "text": "bald tyres slip on wet roads", "year": 2018},
]
TOPICS = pd.DataFrame(
    [["1", "leaking coolant", "a"], ["2", "submarines", "b"], ["3", "roads", "c"]],
    columns=["qid", "query", "kept"],
)


@pytest.fixture
def artifact(home):
    return KlsaIndex(home / "reports")


def small():
    home = tempfile.mkdtemp()
    return klsa.build([{"id": "1", "text": "wet roads"}], name="small", home=home)


TestTransformer = pt.testing.transformer_test_class(lambda: KlsaRetriever(small()))
TestTexts = pt.testing.transformer_test_class(lambda: KlsaTexts(small()))


def test_answers_are_those_of_the_index_with_ranks_from_0(artifact, index):
    found = artifact.retriever(num_results=2)(TOPICS)
    assert list(found.columns) == ["qid", "query", "kept", "docno", "score", "rank"]
    first = found[found.qid == "1"]
    hits = index.search("leaking coolant", 2)
    assert first["docno"].tolist() == [hit.id for hit in hits]
    assert first["score"].tolist() == [hit.score for hit in hits]
    assert first["rank"].tolist() == [0, 1]
    assert set(found.qid) == {"1", "3"}  # nothing is found for the second
    assert found[found.qid == "3"]["kept"].tolist() == ["c", "c"]


def test_a_frame_without_queries_keeps_its_columns(artifact):
    full, empty = artifact.retriever()(TOPICS), artifact.retriever()(TOPICS.iloc[:0])
    assert len(empty) == 0
    assert list(empty.columns) == list(full.columns)
    assert empty["score"].dtype == full["score"].dtype
    nothing = artifact.retriever()(TOPICS.iloc[1:2])
    assert (len(nothing), list(nothing.columns)) == (0, list(full.columns))


def test_a_cut_off_is_fused_and_never_relaxed(artifact):
    retriever = artifact.retriever(alpha=0.5)
    fused = (retriever % 2).compile()
    assert isinstance(fused, KlsaRetriever)
    assert (fused.num_results, fused.parameters["alpha"]) == (2, 0.5)
    assert fused(TOPICS).equals((retriever % 2)(TOPICS))
    assert retriever.fuse_rank_cutoff(5000) is retriever


def test_operators_of_queries_can_be_read_as_words(artifact):
    signs = pd.DataFrame([["1", "coolant -pump"]], columns=["qid", "query"])
    words = artifact.retriever(ranker="bm25", operators=False)
    assert "pump" in words(signs)["docno"].tolist()
    assert "pump" not in artifact.retriever(ranker="bm25")(signs)["docno"].tolist()


def test_wrong_arguments_are_explained(artifact, tmp_path):
    with pytest.raises(pt.validate.InputValidationError):
        artifact.retriever()(TOPICS[["qid"]])
    with pytest.raises(QueryError, match="alpha"):
        artifact.retriever(alpha=2)(TOPICS)
    with pytest.raises(IndexNotFound):
        KlsaIndex(tmp_path / "none").retriever()
    with pytest.raises(CollectionError, match="text_attrs"):
        KlsaIndexer(tmp_path / "new").index([{"docno": "1", "body": "x"}])


def test_documents_come_with_texts_for_rerankers(artifact):
    found = (artifact.retriever(ranker="bm25") >> artifact.text_loader(["title", "text", "year"]))(
        TOPICS
    )
    tyres = found[found.docno == "tyre"].iloc[0]
    assert (tyres["title"], tyres["text"], tyres["year"]) == (
        "Tyres",
        "Bald tyres slip on wet roads.",
        2018,
    )
    assert "text" in artifact.text_loader()(found.iloc[:0][["qid", "docno"]]).columns


def test_an_index_is_built_from_a_corpus_and_rebuilt(tmp_path):
    made = KlsaIndexer(tmp_path / "cars", text_attrs=["title", "text"]).index(iter(CORPUS))
    assert made.built()
    document = made.opened().document("heat")
    assert (document.title, document.text) == ("", "Overheating\nengines lose coolant")
    assert document.metadata == {"year": 2021}
    again = made.index(CORPUS[1:])
    assert again is made
    assert made.opened().ids() == ["tyre"]
    assert made.opened().document("tyre").title == "Tyres"


def test_the_folder_of_any_index_is_an_artifact(home, tmp_path):
    loaded = pt.Artifact.load(str(home / "reports"))
    assert isinstance(loaded, KlsaIndex)
    assert pt.inspect.artifact_type_format(loaded) == ("sparse_index", "klsa")
    package = loaded.build_package(str(tmp_path / "reports.tar.lz4"), verbose=False)
    with LZ4FrameFile(package) as whole, tarfile.open(fileobj=whole) as files:
        files.extractall(tmp_path / "copies" / "reports", filter="data")
    unpacked = pt.Artifact.load(str(tmp_path / "copies" / "reports"))
    assert unpacked.retriever(ranker="bm25")(TOPICS).equals(loaded.retriever(ranker="bm25")(TOPICS))


def test_an_experiment_gives_the_map_of_klsa_eval(collections_home, tmp_path):
    cran = open_collection("cran", data=collections_home)
    index = klsa.build(cran, name="cran", home=tmp_path)
    systems = [system for system in SYSTEMS if system.name in ("bm25", "klsa")]
    judged = judge_systems(cran, lambda *_: index, systems=systems, measures=["map"])
    topics = pd.DataFrame([{"qid": each.id, "query": each.text} for each in cran.queries()])
    qrels = pd.DataFrame(
        [
            {"qid": each.query_id, "docno": each.document_id, "label": each.gain}
            for each in cran.judgements()
        ]
    )
    artifact = KlsaIndex(tmp_path / "cran")
    found = pt.Experiment(
        [artifact.retriever(ranker="bm25", num_results=1400), artifact.retriever(num_results=1400)],
        topics,
        qrels,
        ["map"],
    )
    assert found["name"].tolist() == ["cran bm25", "cran klsa"]
    # klsa-eval ranks what scores 0 too, in document order.
    expected = [judged[system.name].means()["map"] for system in systems]
    assert found["map"].tolist() == pytest.approx(expected, abs=0.0005)
