"""Passages: long documents are ranked by themselves and by their best passage, or passage by
passage, whatever was written, filtered or refitted.
"""

import random
import shutil
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import Document, build, open_index
from klsa_search.errors import IndexDamaged, QueryError, SettingsError
from klsa_search.indexing import refit
from klsa_search.search.query.query import estimated_tokens
from klsa_search.storage.maintenance import copy_index, delete_index, verify
from klsa_search.storage.passages import PassageId, passages_of
from tests.support.examples import one_in

RARE = "narwhal valve"
PLAIN = {"operators": False, "spelling": "off"}


def text(seed, sentences):
    words = random.Random(seed)
    return " ".join(
        " ".join(words.choice(WORDS) for _ in range(6)).capitalize() + "." for _ in range(sentences)
    )


WORDS = [f"{first}{last}" for first in ("pump", "leak", "seal", "oil") for last in "abcdefghij"]
DOCUMENTS = [
    Document(
        id=f"d{n}",
        title=f"Part {n}",
        text=text(n, 40 if n % 3 == 0 else 3),
        metadata={"year": 2000 + n % 4},
    )
    for n in range(24)
]
NEEDLE = Document(
    id="manual#1",
    title="Manual",
    text=f"{text(100, 30)} The {RARE} opens. {text(101, 30)}",
    metadata={"year": 2003},
)


@pytest.fixture(scope="module", params=[1, 3])
def built(request, tmp_path_factory):
    return built_in(tmp_path_factory.mktemp("passages"), request.param)


def built_in(home, partitions):
    options = {"passages": 50, "dimensions": 5, "partitions": partitions, "workers": 1}
    build([*DOCUMENTS, NEEDLE], name="long", home=home, **options).close()
    return home / "long"


@pytest.fixture
def index(built, tmp_path):
    with closing(open_index(shutil.copytree(built, tmp_path / "long"))) as opened:
        yield opened


EXACT = {**PLAIN, "exact": True}


def ranked(index, query, k=10_000, **options):
    """Scores of the best documents by ID."""
    doc_ids, scores = index.rank(query, k, **EXACT, **options)
    return dict(zip(index.ids(doc_ids), scores.tolist(), strict=True))


def expected(index, query, ranker, weight=1.0):
    """s(d) + w max s(p), from the scores of all documents and of all passages."""
    scores = ranked(index, query, ranker=ranker, passage_weight=0)
    best = {}
    for hit in index.search(query, k=10_000, group="passage", ranker=ranker, **EXACT):
        best[hit.document_id] = max(best.get(hit.document_id, 0), hit.score)
    return {id_: score + weight * best.get(id_, 0) for id_, score in scores.items()}


def assert_ranks_by_documents_and_passages(index):
    for query in ("pumpa leakb", "sealc oild oile", RARE, "pumpj"):
        for ranker in ("klsa", "bm25"):
            wanted = expected(index, query, ranker)
            assert ranked(index, query, ranker=ranker) == pytest.approx(wanted, abs=1e-6)
            scores = index.scores(query, ranker=ranker, **PLAIN)
            positive = sorted(score for score in wanted.values() if score)
            assert np.sort(scores[scores > 0]) == pytest.approx(positive, abs=1e-6)
            best = ranked(index, query, 5, ranker=ranker)
            assert list(best.values()) == pytest.approx(positive[:-6:-1], abs=1e-6)
            assert best == pytest.approx({id_: wanted[id_] for id_ in best}, abs=1e-6)


def contents(index):
    """Text of each passage as found, and as the document has it."""
    hits = index.search("", k=10_000, group="passage", filter="year >= 0").hits
    texts = {document.id: document.text for document in index.live_documents()}
    assert {hit.document_id for hit in hits} == texts.keys()
    for hit in hits:
        assert hit.text == texts[hit.document_id][slice(*hit.span)]
        assert PassageId.of(hit.id) == (hit.document_id, *hit.span)
    return sorted(hit.id for hit in hits)


def passages_of_all(index):
    return sorted(
        passage.id for document in index.live_documents() for passage in passages_of(document, 50)
    )


def test_documents_are_ranked_by_themselves_and_by_their_best_passage(index):
    assert_ranks_by_documents_and_passages(index)


def test_the_passage_that_has_the_words_is_found(index):
    hit = index.search(RARE, group="passage")[0]
    assert hit.document_id == NEEDLE.id
    assert RARE in hit.text
    assert (hit.title, hit.metadata) == ("Manual", {"year": 2003})
    document = index.search(RARE)[0]
    assert (document.id, document.span) == (NEEDLE.id, hit.span)
    assert RARE in document.snippet


def test_without_long_documents_nothing_changes(tmp_path):
    short = [each for each in DOCUMENTS if len(each.text) < 200]
    for setting in ("auto", "off"):
        with closing(build(short, name=setting, home=tmp_path, passages=setting)) as index:
            assert not index.manifest.has_passages
            hit = index.search("pumpa", group="passage")[0]
            assert hit.text == index.document(hit.document_id).text[slice(*hit.span)]
    first, second = (tmp_path / name / "000001" for name in ("auto", "off"))
    files = [each.name for each in first.glob("*.npy")]
    assert files
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in files)


def test_auto_divides_long_documents(tmp_path):
    documents = [{"id": "a", "text": text(1, 200)}, {"id": "b", "text": "Short."}]
    with closing(build(documents, name="auto", home=tmp_path)) as index:
        assert index.manifest.has_passages
        assert index.search("pumpa", group="passage").total > 1


writes = st.lists(
    st.tuples(st.sampled_from([f"d{n}" for n in range(6)]), st.sampled_from([None, 2, 30, 40])),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@one_in(4)
@given(writes=writes, seed=st.integers(0, 3))
def test_passages_follow_every_write(built, tmp_path_factory, writes, seed):
    path = shutil.copytree(built, tmp_path_factory.mktemp("written") / "long")
    with closing(open_index(path)) as index:
        for id_, sentences in writes:
            if sentences is None:
                index.delete([id_])
            else:
                written = {"id": id_, "text": text(seed, sentences), "year": 2001}
                index.add([written])
        assert contents(index) == passages_of_all(index)
        assert_ranks_by_documents_and_passages(index)
        with closing(open_index(path)) as another:
            query = "pumpa leakb"
            assert np.array_equal(another.scores(query), index.scores(query))
            assert contents(another) == contents(index)


@pytest.mark.slow
def test_a_refit_is_a_build_of_the_same_documents(index, tmp_path):
    index.add([{"id": "d1", "text": text(7, 30), "year": 2001}])
    index.delete(["d3"])
    settings = {"passages": 50, "dimensions": 5}
    settings |= {"partitions": len(index.partitions), "workers": 1}
    with (
        closing(build(index.live_documents(), name="b", home=tmp_path, **settings)) as one,
        closing(refit(index.path.parent)) as other,
    ):
        assert contents(one) == contents(other)
        assert np.array_equal(one.scores("pumpa leakb"), other.scores("pumpa leakb"))


def test_filters_facets_and_sorting_are_of_passages(index):
    found = index.search(
        "pumpa", k=10_000, group="passage", filter="year = 2001", facets=["year"], sort=["year:asc"]
    )
    assert {hit.metadata["year"] for hit in found} == {2001}
    assert found.facets["year"].values == ((2001, found.total),)
    assert len(found) == found.total
    for hit in index.search("pumpa leakb", filter="year = 2001"):
        assert hit.metadata["year"] == 2001


def test_all_matching_passages_of_one_document(index):
    hit = next(hit for hit in index.search("pumpa") if hit.more_passages)
    found = index.search("pumpa", 100, group="passage", filter={"field": "id", "=": hit.id})
    assert {each.document_id for each in found} == {hit.id}
    assert found.total == len(found) == 1 + hit.more_passages


def test_pages_of_passages_do_not_overlap(index):
    query, size = "pumpa leakb", 7
    pages = [index.search(query, k=size, offset=n, group="passage") for n in range(0, 40, size)]
    ids = [hit.id for page in pages for hit in page]
    assert len(set(ids)) == len(ids) == min(42, pages[0].total)


def test_explanations_add_up(index):
    for group in ("document", "passage"):
        for hit in index.search("pumpa leakb", explain=True, group=group):
            found = hit.explanation
            parts = (found.lexical, found.coverage, found.latent, found.expansion, found.passage)
            assert sum(part.value for part in parts if part) == pytest.approx(hit.score, rel=1e-3)
            if group == "document":
                assert index.explain("pumpa leakb", hit.id).score == pytest.approx(hit.score)
                assert found.passage.explanation.id.startswith(f"{hit.id}#")


def test_synonyms_apply_to_passages(index):
    index.set_synonyms(["horn, narwhal"])
    assert index.search("horn", group="passage")[0].document_id == NEEDLE.id


def test_feedback_is_by_documents(index):
    with pytest.raises(QueryError, match="group = 'document'"):
        index.search("pumpa", group="passage", positive=["d0"])
    assert index.search("pumpa", positive=["d0"]).hits
    with pytest.raises(QueryError, match="group"):
        index.search("pumpa", group="chapter")


def test_passages_are_verified_copied_and_removed_with_their_index(index, tmp_path):
    path = index.path.parent
    verify(path)
    copy_index(path, tmp_path / "copy")
    with closing(open_index(tmp_path / "copy")) as copy:
        assert contents(copy) == contents(index)
    file = index.partitions[0].path / "passages" / "lengths.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(IndexDamaged, match=r"lengths\.npy"):
        verify(path)
    index.close()
    assert delete_index(path) == []
    assert not path.exists()


def test_a_budget_has_the_best_passages_that_fit(index):
    query = "pumpa leakb sealc"
    found = index.search(query, k=50, group="passage")
    for size in (1, 60, 200, 1_000, 10**6):
        answer = index.search(query, k=5, group="passage", max_tokens=size)
        assert answer.tokens == sum(estimated_tokens(hit.text) for hit in answer) <= size
        assert len(answer) <= 5
        assert [hit.rank for hit in answer] == list(range(1, len(answer) + 1))
        for hit in answer:
            assert hit.text == index.document(hit.document_id).text[slice(*hit.span)]
            assert PassageId.of(hit.id) == (hit.document_id, *hit.span)
    assert not answer.truncated
    assert answer[0].score == found[0].score
    nothing = index.search(query, group="passage", max_tokens=1)
    assert (len(nothing), nothing.truncated, nothing.tokens) == (0, True, 0)
    again = index.search(query, k=5, group="passage", max_tokens=200)
    assert again.hits == index.search(query, k=5, group="passage", max_tokens=200).hits


def test_passages_that_follow_each_other_are_one(index):
    answer = index.search("Manual", k=3, group="passage", max_tokens=10**6)
    manual = next(hit for hit in answer if hit.document_id == NEEDLE.id)
    assert manual.text == NEEDLE.text


def test_a_repeated_passage_is_returned_once(tmp_path):
    same = text(3, 4)
    documents = [{"id": str(n), "text": same} for n in range(5)]
    documents.append({"id": "other", "text": text(4, 4)})
    with closing(build(documents, name="same", home=tmp_path)) as index:
        answer = index.search(same, group="passage", max_tokens=10_000)
        assert {hit.document_id for hit in answer} == {"0", "other"}


def test_tokens_are_counted_by_the_callers_function(index):
    answer = index.search(
        "pumpa", group="passage", max_tokens=100, count_tokens=lambda text: len(text.split())
    )
    assert answer.tokens == sum(len(hit.text.split()) for hit in answer) <= 100
    with pytest.raises(QueryError, match="max_tokens"):
        index.search("pumpa", max_tokens=100)


def test_a_restricted_index_has_no_passages_of_other_documents(index):
    index.add([{"id": "new", "text": f"{text(9, 30)} The {RARE}.", "year": 2001}])
    visible = index.restricted("year = 2001")
    for group in ("document", "passage"):
        found = visible.search("pumpa leakb valve", k=1_000, group=group, explain=False)
        assert {hit.metadata["year"] for hit in found} == {2001}
    assert contents(visible) == passages_of_all(visible)
    assert_ranks_by_documents_and_passages(visible)


@pytest.mark.parametrize("words", [5, "9", "100000", "on", True])
def test_an_invalid_number_of_words_is_refused(words, tmp_path):
    with pytest.raises(SettingsError, match="passages"):
        build(DOCUMENTS, name="wrong", home=tmp_path, passages=words)
