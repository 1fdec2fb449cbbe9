"""Plug-ins are found by name, in packages that are installed; built-in names stay what they are."""

import sys

import pytest

from klsa_search import build, open_index
from klsa_search.core import plugins
from klsa_search.core.plugins import Plugin, find_plugin, load_plugin, plugin_names
from klsa_search.embedding import open_embedder, open_reranker
from klsa_search.errors import PluginFailed, PluginMissing, QueryError, SettingsError
from tests.support.plugins import forget, use, write_package
from tests.support.processes import run_python

MODULE = """
import numpy as np

def count(reader, query):
    scores = np.zeros(reader.max_doc)
    for term in query.numbers.tolist():
        doc_ids, counts = reader.postings(term)
        scores[doc_ids] += counts
    return scores

def root(reader, query):
    return np.sqrt(count(reader, query))

def short(reader, query):
    return np.zeros(1)

def unknown(reader, query):
    return np.full(reader.max_doc, np.nan)

def failing(reader, query):
    raise ZeroDivisionError("by nothing")

def words(text):
    return [("all", 0, len(text))] if text else []

def embed(texts, kind):
    return np.array([[1.0, len(text)] for text in texts])

def rerank(query, texts):
    return [text.count(query) for text in texts]

number = 3
"""
RANKERS = {
    **{name: f"own_plugins:{name}" for name in ("count", "root", "short", "unknown", "failing")},
    "number": "own_plugins:number",
    "absent": "no_such_module:rank",
    "bm25": "own_plugins:failing",
}
GROUPS = {
    "klsa_search.rankers": RANKERS,
    "klsa_search.tokenizers": {"whole": "own_plugins:words"},
    "klsa_search.embedders": {"lengths": "own_plugins:embed"},
    "klsa_search.rerankers": {"counts": "own_plugins:rerank"},
    "klsa_search.kernels": {"number": "own_plugins:number"},
    "klsa_search.spectral_functions": {"number": "own_plugins:number"},
}
DOCUMENTS = [
    {"id": "a", "text": "wing wing flow"},
    {"id": "b", "text": "flow of bread"},
    {"id": "c", "text": "wing"},
]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder with a package of plug-ins."""
    site = tmp_path / "site"
    write_package(site, "own-plugins", "1.2", GROUPS)
    (site / "own_plugins.py").write_text(MODULE)
    use(monkeypatch, site)
    yield site
    forget()
    sys.modules.pop("own_plugins", None)


@pytest.fixture
def index(site, tmp_path):
    opened = build(DOCUMENTS, name="own", home=tmp_path)
    yield opened
    opened.close()


def test_names_are_found_without_importing_anything(site):
    assert plugin_names("ranker") == tuple(sorted(RANKERS))
    assert find_plugin("ranker", "count") == Plugin("count", "own-plugins", "1.2")
    assert find_plugin("ranker", "nothing") is None
    assert plugin_names("embedder") == ("lengths",)
    assert "own_plugins" not in sys.modules


def test_built_in_names_read_no_metadata(monkeypatch, tmp_path):
    def refused(kind):
        raise AssertionError(kind)

    monkeypatch.setattr(plugins, "entry_points_of", refused)
    index = build(DOCUMENTS, name="plain", home=tmp_path)
    assert index.search("wing", ranker="bm25", spectral="gvsm").total
    assert index.manifest.plugins == {}
    index.close()


def test_a_ranker_of_a_plug_in_ranks(index):
    found = index.search("wing flow", ranker="count", explain=True)
    assert [(hit.id, hit.score) for hit in found.hits] == [("a", 3), ("b", 1), ("c", 1)]
    assert found.ranker == "count"
    terms = found.hits[0].explanation.lexical.terms
    assert [(term.term, term.value) for term in terms] == [("wing", 2), ("flow", 1)]


def test_a_score_that_is_not_a_sum_of_words_is_explained_as_one_part(index):
    explanation = index.explain("wing flow", "a", ranker="root")
    assert explanation.lexical is None
    assert explanation.undivided.value == explanation.score == pytest.approx(3**0.5)


def test_embedders_and_rerankers_are_opened_by_name(site):
    assert open_embedder("lengths").embed(["wing"], "query").tolist() == [[1.0, 4.0]]
    assert open_reranker("counts")("wing", ["wing wing", "flow"]) == [2.0, 0.0]
    with pytest.raises(SettingsError, match=r"embedder = 'counts' is unknown; .* of a plug-in"):
        open_embedder("counts")


def test_a_built_in_name_is_not_replaced(index):
    assert index.search("wing", ranker="bm25").total == 2


@pytest.mark.parametrize(
    ("ranker", "why"),
    [
        ("short", r"ranker `short` returned scores of shape \(1,\)"),
        ("unknown", "ranker `unknown` returned scores .* not finite"),
        ("failing", "ranker `failing` failed .ZeroDivisionError: by nothing."),
        ("number", "ranker `number` is not a function"),
        (
            "absent",
            r"ranker `absent` of own-plugins 1.2 cannot be imported .* reinstall",
        ),
    ],
)
def test_faults_of_a_ranker_are_named(index, ranker, why):
    with pytest.raises(PluginFailed, match=why):
        index.search("wing", ranker=ranker)


def test_faulty_plug_ins_of_other_kinds_are_named(index, tmp_path):
    with pytest.raises(PluginFailed, match=r"`number` failed with gamma = 0.3"):
        index.search("wing", spectral="number")
    with pytest.raises(PluginFailed, match=r"`number` is 3; it must be a FeatureWeighting"):
        build(DOCUMENTS, name="other", home=tmp_path, kernel="number")


def test_unknown_names_are_refused_with_those_that_exist(index, tmp_path):
    with pytest.raises(
        QueryError, match=r"no plug-in of this name .* bm25, .* root, short"
    ) as error:
        index.search("wing", ranker="bm52")
    assert error.value.field == "ranker"
    with pytest.raises(SettingsError, match=r"tokenizer = 'half': .* use one of whole, or install"):
        build(DOCUMENTS, name="other", home=tmp_path, tokenizer="half")


def test_a_name_of_two_packages_is_an_error(site, monkeypatch):
    write_package(site, "rival", "3", {"klsa_search.rankers": {"count": "own_plugins:root"}})
    with pytest.raises(
        PluginFailed, match=r"`count` is provided by own-plugins 1\.2 and rival 3; uninstall all"
    ):
        load_plugin("ranker", "count")


def test_an_index_names_its_plug_in_when_it_is_missing(site, tmp_path, monkeypatch):
    build(
        DOCUMENTS, name="own", home=tmp_path, tokenizer="whole", ranker="count", language="none"
    ).close()
    reopened = open_index(tmp_path / "own")  # no permission is needed
    assert reopened.search("ALL").total == 3
    expected = Plugin("whole", "own-plugins", "1.2")
    assert reopened.manifest.plugins["tokenizer"] == expected
    reopened.close()

    (site / "own_plugins-1.2.dist-info").rename(site / "own_plugins-1.3.dist-info")
    metadata = site / "own_plugins-1.3.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.2", "1.3"))
    forget()
    with pytest.raises(
        PluginMissing,
        match=r"tokenizer `whole` of own-plugins 1\.2, which is now that of own-plugins 1\.3; "
        r"install own-plugins 1\.2, or build the index again",
    ):
        open_index(tmp_path / "own")

    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(site)])
    forget()
    with pytest.raises(PluginMissing, match=r"which is not installed; install own-plugins 1.2"):
        open_index(tmp_path / "own")


def test_a_ranker_may_have_another_version(site, tmp_path):
    build(DOCUMENTS, name="own", home=tmp_path, ranker="count").close()
    (site / "own_plugins-1.2.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: own-plugins\nVersion: 2\n"
    )
    forget()
    opened = open_index(tmp_path / "own")
    assert opened.search("wing").ranker == "count"
    opened.close()


@pytest.mark.slow
def test_commands_take_plug_ins(index, tmp_path):
    code = "from klsa_search.cli.search import main; main()"
    options = ["own", "wing flow", "--home", str(tmp_path), "--explain", "--ranker"]
    done = run_python(code, *options, "root", check=True)
    assert "not divided into parts" in done.stdout
    done = run_python(code, *options, "bm52")
    assert done.returncode == 2
    assert "'bm52': no plug-in of this name is installed; use one of klsa, bm25" in done.stderr
