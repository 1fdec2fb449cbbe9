"""Counts: a worked example, the order of the vocabulary, and empty documents."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.core.array_types import Spool
from klsa_search.kernels import counts
from klsa_search.kernels.counts import CountsBuilder
from klsa_search.kernels.vocabulary import Vocabulary
from tests.support.worlds import counts_of, random_documents


def test_a_worked_example():
    counts = counts_of("wing flow wing", "flow", "")
    assert list(counts.vocabulary.terms) == ["flow", "wing"]
    assert counts.matrix.toarray().tolist() == [[1, 2], [1, 0], [0, 0]]
    assert counts.lengths.tolist() == [3, 1, 0]
    assert counts.document_frequencies.tolist() == [2, 1]


def test_the_vocabulary_is_sorted_whatever_the_order_of_arrival():
    one = counts_of("b a", "c")
    other = counts_of("c", "a b")
    assert one.vocabulary.terms == other.vocabulary.terms
    assert np.array_equal(one.matrix.toarray(), other.matrix.toarray()[::-1])


def test_no_document_is_a_collection_too():
    counts = CountsBuilder().finish()
    assert counts.matrix.shape == (0, 0)
    assert counts.lengths.tolist() == []


def test_pairs_stand_side_by_side_in_either_order_and_in_two_documents():
    builder = CountsBuilder()
    builder.add(["wing", "flow"], ["drag", "wing", "wing"])  # a title and a text
    builder.add(["flow", "wing", "drag"])
    counts = builder.finish()
    # flow-wing: once in both. drag-wing: once in both. wing-wing is no pair; flow-drag is across
    # the title's end in the first, and not adjacent in the second.
    assert counts.pairs.toarray().tolist() == [[1, 1], [1, 1]]
    assert counts.matrix.toarray().tolist() == [[1, 1, 3], [1, 1, 1]]


def test_a_pair_of_one_document_only_is_left_out():
    assert counts_of("wing flow", "flow drag").pairs.shape == (2, 0)


def same(one, other):
    for left, right in ((one.matrix, other.matrix), (one.pairs, other.pairs)):
        assert left.shape == right.shape
        assert left.dtype == right.dtype == np.int32
        for name in ("indptr", "indices", "data"):
            assert np.array_equal(getattr(left, name), getattr(right, name))
    return one.vocabulary.terms == other.vocabulary.terms


DOCUMENTS = ["", *random_documents(40, 12), "", "once never", " ".join(random_documents(30, 12))]


@pytest.mark.parametrize("block", [1, 7, 50])
@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_threads_and_files_change_nothing(block, threads, monkeypatch, tmp_path):
    def counted(builder):
        for document in DOCUMENTS:
            builder.add(document.split()[:4], [], document.split()[4:], [])
        return builder.finish()

    whole = counted(CountsBuilder())
    monkeypatch.setattr(counts, "BLOCK", block)
    monkeypatch.setattr(counts, "SORTED", 7 * block)
    monkeypatch.setattr(counts, "CHUNK", 100)
    spool = partial(Spool, folder=tmp_path, limit=64)
    assert same(whole, counted(CountsBuilder(spool, threads=threads)))


def test_counts_are_those_of_scikit_learn():
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=r"\S+", lowercase=False)
    expected = vectorizer.fit_transform(DOCUMENTS)
    found = counts_of(*DOCUMENTS)
    assert found.vocabulary.terms == tuple(vectorizer.get_feature_names_out())
    assert (found.matrix.toarray() == expected.toarray()).all()


def test_words_without_a_term_have_their_places_and_no_count():
    builder = CountsBuilder()
    # "flow of wing", then "wing the": two parts of one document, and a document like it.
    for terms in (["flow", "wing"], ()):
        words = np.array([0, -1, 1, 1, -1], np.int32)
        builder.extend(3, words, np.array([3, 2], np.int32), 2, terms)
    counts = builder.finish()
    assert counts.matrix.toarray().tolist() == [[1, 2]] * 2
    assert counts.pairs.toarray().tolist() == [[1]] * 2
    assert counts.words == 10
    (block,) = builder.blocks()
    assert block.words.tolist() == [0, -1, 1, 1, -1] * 2
    assert (block.lengths.tolist(), block.parts.tolist()) == ([3, 2, 3, 2], [2, 2])
    builder.close()


@pytest.mark.parametrize("size", [1, 7, 50])
def test_blocks_are_the_documents_once_more(size, monkeypatch, tmp_path):
    monkeypatch.setattr(counts, "BLOCK", size)
    builder = CountsBuilder(partial(Spool, folder=tmp_path, limit=64))
    for document in DOCUMENTS:
        builder.add(document.split())
    terms = builder.finish().vocabulary.terms
    found = [terms[word] for block in builder.blocks() for word in block.words]
    assert found == " ".join(DOCUMENTS).split()
    builder.close()
    assert list(tmp_path.iterdir()) == []


def test_counts_do_not_depend_on_the_numbering_dictionary():
    builder = CountsBuilder()
    dictionaries = {4: {}, 9: {}}
    for place, document in enumerate(DOCUMENTS):
        name = (9, 4, 4)[place % 3]
        known = dictionaries[name]
        parts = [document.split()[:4], document.split()[4:]]
        terms = [term for term in dict.fromkeys(document.split()) if term not in known]
        known.update({term: len(known) + number for number, term in enumerate(terms)})
        tokens = [known[term] for part in parts for term in part]
        lengths = [len(part) for part in parts]
        builder.extend(name, np.array(tokens, np.int32), np.array(lengths, np.int32), 2, terms)
    whole = CountsBuilder()
    for document in DOCUMENTS:
        whole.add(document.split()[:4], document.split()[4:])
    assert same(builder.finish(), whole.finish())


def test_progress_ends_at_the_end():
    builder, told = CountsBuilder(), []
    for document in DOCUMENTS:
        builder.add(document.split())
    builder.finish(lambda *step: told.append(step))
    assert told[-1][0] == told[-1][1] > 0
    assert sorted(told) == told


@pytest.mark.parametrize("terms", [["b", "a"], ["a", "a"]])
def test_a_vocabulary_is_sorted_and_without_repeats(terms):
    with pytest.raises(ValueError, match="sorted"):
        Vocabulary(terms)


def test_a_word_of_the_title_counts_by_its_weight():
    def counted(**options):
        builder = CountsBuilder(**options)
        builder.add(["wing", "flow"], ["drag", "wing", "wing"])
        builder.add(["flow", "wing", "drag"])  # of one part, which is no title
        return builder.finish()

    counts = counted(weights=(3, 1))
    assert counts.matrix.toarray().tolist() == [[1, 3, 5], [1, 1, 1]]
    assert counts.pairs.toarray().tolist() == [[1, 3], [1, 1]]
    assert counts.lengths.tolist() == [9, 3]
    assert (counts.tokens, counts.words) == (8, 8)
    assert same(counted(weights=(1, 1)), counted())


def test_common_terms_are_counted_and_make_no_pairs():
    """Features of documents are those of the documents without them."""
    builder, without = CountsBuilder(common={"of", "use"}), CountsBuilder()
    for text in ("use of wing of flow", "wing flow use drag", "of"):
        builder.add(text.split())
        without.add([term for term in text.split() if term not in {"of", "use"}])
    counts, content = builder.finish(), without.finish()
    assert list(counts.vocabulary.terms) == ["drag", "flow", "of", "use", "wing"]
    assert counts.common.tolist() == [2, 3]
    assert counts.lengths.tolist() == [5, 4, 1]
    assert counts.pairs.toarray().tolist() == content.pairs.toarray().tolist() == [[1], [1], [0]]
    assert (counts.content.matrix.toarray()[:, [0, 1, 4]] == content.matrix.toarray()).all()
    assert counts.content.matrix.nnz == content.matrix.nnz
    assert counts.content.lengths.tolist() == content.lengths.tolist()
    assert content.content is content


@given(
    st.lists(st.tuples(*[st.lists(st.sampled_from("abcdef"), max_size=6)] * 2), max_size=8),
    st.integers(1, 16),
)
def test_a_title_that_counts_n_times_is_a_title_written_n_times(documents, times):
    builder, written = CountsBuilder(weights=(times, 1), common={"f"}), CountsBuilder(common={"f"})
    for title, text in documents:
        builder.add(title, text)
        written.add(*[title] * times, text)
    counts, expected = builder.finish(), written.finish()
    assert same(counts, expected)
    assert same(counts.content, expected.content)
