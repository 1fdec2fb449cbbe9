"""Passages equal the snippets of whole texts, to the character."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.analysis import Analyzer
from klsa_search.collection import open_collection
from klsa_search.core.config import Settings
from klsa_search.errors import IndexDamaged
from klsa_search.indexing.reading import read
from klsa_search.search import snippets as module
from klsa_search.search.snippets import StoredSnippets, snippet
from klsa_search.storage.arrays import open_array
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.forward_index import Forward
from tests.analysis.test_offsets import ORDINARY, POOLS
from tests.support.examples import one_in

WORDS = [
    "wing", "Wings", "flow's", "don't", "of", "漢字", "飛行機の翼", "ﬁx", "…", "½", "น้ำ", "naïve",
]  # fmt: skip
SPACES = [
    *(" ", "  ", "\n\n", "\n", " \f", "\t", "\u00a0", "\u3000", "\u2028"),
    *(". ", "! A", "。", "\n- "),
]
QUERY = "wing flow 漢字 翼 fix น้ำ naïve 1 2 ll do a"

words = st.lists(st.sampled_from([*WORDS, "z" * 30]), max_size=30)
spaces = st.sampled_from(SPACES)
texts = st.one_of(
    st.builds(lambda parts, space: space.join(parts), words, spaces),
    st.text(st.sampled_from("".join(POOLS) + " "), max_size=60),
)


class Kept:
    """Documents and their forward index, without all that ranks."""

    def __init__(self, folder, texts, **chosen):
        records = [
            {"id": str(number), "title": "wing of 漢字", "text": text}
            for number, text in enumerate(texts)
        ]
        chosen = Settings(**{"language": "english", "identifiers": "off", **chosen})
        documents = read(
            open_collection(records), folder, chosen, lambda *_: None, memory=2**30, processes=1
        )
        self.texts, self.analyzer = texts, Analyzer(chosen)
        self.folder, self.fields, self.vocabulary = (
            folder,
            chosen.searched_fields,
            documents.counts.vocabulary,
        )
        self.reopened()

    def reopened(self):
        """Read the files again."""
        self.documents = DocumentReader.open(self.folder)
        forward = Forward.open(self.folder, self.fields)
        self.passages = StoredSnippets(self.documents, forward, self.analyzer, self.vocabulary)
        return self

    def of(self, doc_ids, terms, weights=None, **options):
        """The passages of documents."""
        return self.passages.of(doc_ids, *self.passages.numbered(terms, weights), **options)

    def differing(self, query, **options):
        """The first passage that is not `snippet`'s, with that; None if there is none."""
        terms = set(self.analyzer.terms(query))
        weights = options.pop("weights", None)
        found = self.of(range(len(self.texts)), terms, weights, **options)
        for passage, text in zip(found, self.texts, strict=True):
            wanted = snippet(text, terms, self.analyzer, weights=weights, **options)
            if passage != wanted:
                return passage, wanted
        return None


@given(
    texts=st.lists(texts, min_size=1, max_size=5),
    length=st.integers(1, 60),
    weight=st.sampled_from([None, 0.5, 3.0]),
    stop_words=st.sampled_from(["short", "long", "none"]),
)
def test_every_passage_is_what_snippet_gives(tmp_path_factory, texts, length, weight, stop_words):
    kept = Kept(tmp_path_factory.mktemp("kept"), texts, stop_words=stop_words)
    weights = None if weight is None else {"wing": weight, "漢字": weight / 7}
    assert kept.differing(QUERY, length=length, weights=weights) is None
    assert kept.differing("", length=length) is None


@one_in(3)
@given(end=texts, space=st.sampled_from(SPACES))
def test_the_end_of_a_long_text_is_read(tmp_path_factory, end, space):
    texts = ["lorem " * 1_700 + space + end, "飛行機。" * 2_500 + end]
    assert Kept(tmp_path_factory.mktemp("kept"), texts).differing(QUERY, length=50) is None


@pytest.mark.parametrize("needle", ["needle", "Naïve ﬁx", "漢字"])
def test_a_word_at_the_end_of_a_long_text_is_shown(tmp_path, needle):
    text = f"{'The wing of a plane, and more of it, ' * 14_000}{needle}"
    kept = Kept(tmp_path, [text])
    (passage,) = kept.of([0], set(kept.analyzer.terms(needle)))
    assert passage.startswith("…")
    assert passage.endswith(needle)


ODD = [
    "wing" + " " * 10_000,
    " " * 10_000 + "wing",
    "wing" + "\u3000" * 10_000,
    "x" * (9_994) + " wing’s",
    "x" * (9_995) + " don't",
    "x" * (10_005),
    "wing " * 3000,
    "wing flow " * 900 + "." * 2000,
    "漢字" * 6000,
    "½" * 12_000,
    "\ufdfa" * 12_000 + "wing",
    "\u0e33" * 600,
    "\U00020000 wing \U0001f600 " * 50,
    "",
    " \n ",
]


def test_odd_and_long_texts(tmp_path):
    kept = Kept(tmp_path, ODD)
    for length in (40, 240):
        assert kept.differing(QUERY, length=length) is None


@pytest.mark.parametrize("language", ["turkish", "german", "thai"])
def test_other_languages(tmp_path, language):
    texts = ["İstanbul’da IŞIK ışık. " * 30, "Flügel über Straßen " * 30, "การบินของเครื่องบิน " * 30]
    kept = Kept(tmp_path, texts, language=language, fold_accents=True)
    for query in ("ışık", "flugel strasse", "เครื่องบิน"):
        assert kept.differing(query) is None


def test_every_script(tmp_path):
    """Search for each word alone, with other words, and with weights."""
    texts = [f"{text} {' '.join(ORDINARY)} {text}" for text in ORDINARY]
    kept = Kept(tmp_path, texts, stop_words="none")
    for text in ORDINARY:
        weights = {term: 1 / place for place, term in enumerate(kept.analyzer.terms(text), start=1)}
        for word in text.split()[:2]:
            assert kept.differing(word, length=30) is None
        for length in (30, 240):
            assert kept.differing(text, length=length, weights=weights) is None


def test_texts_of_ascii_do_not_ask_for_all_of_unicode(tmp_path, monkeypatch):
    asked = []
    real = module.all_characters
    monkeypatch.setattr(module, "all_characters", lambda: asked.append(1) or real())
    ascii_alone = Kept(tmp_path, ["flow wing " * 60])
    assert ascii_alone.differing("wing") is None
    assert not asked
    (tmp_path / "other").mkdir()
    assert (
        Kept(tmp_path / "other", ["flow wing " * 60, "naïve wing " * 60]).differing("wing") is None
    )
    assert asked


def test_threads_may_share_them(tmp_path):
    texts = [f"{'flow ' * (7 * number)} wing {'naïve ' * 60}" for number in range(40)]
    kept = Kept(tmp_path, texts)
    alone = kept.of(range(40), {"wing"})
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: kept.of([n % 40], {"wing"})[0], range(400)))
    assert found == alone * 10


def harm(folder, name, places, values):
    """Replace elements of an array file."""
    array = np.load(folder / f"{name}.npy")
    array[places] = values
    np.save(folder / f"{name}.npy", array)


def test_damage_gives_an_error_or_a_passage_of_every_document(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        kept = Kept(folder, ["flow wing " * 60, "wing " * 90])
        for name, length in (("documents", 1_000), ("forward_codes", 200)):
            harm(folder, name, rng.integers(0, length, 3), rng.integers(0, 256, 3))
        with suppress(IndexDamaged):
            assert len(kept.reopened().of(range(2), {"wing"})) == 2


def test_a_zero_byte_in_a_text_is_damage(tmp_path):
    kept = Kept(tmp_path, ["flow wing", "wing"])
    content = open_array(tmp_path, "documents")
    harm(tmp_path, "documents", np.flatnonzero(content == ord("w"))[1], 0)
    with pytest.raises(IndexDamaged, match="zero byte"):
        kept.reopened().of(range(2), {"wing"})


def test_hits_carry_them(tmp_path):
    records = [{"id": str(n), "text": f"{'flow ' * n} wing {'drag ' * 60}"} for n in range(9)]
    for spectral in ("squashing", "gvsm"):
        index = build(records, name=spectral, home=tmp_path, spectral=spectral)
        found = index.search("wings")
        assert len(found) == len(records)
        for hit in found:
            text = index.document(hit.id).text
            assert hit.snippet == snippet(text, {"wing"}, index.analyzer)
