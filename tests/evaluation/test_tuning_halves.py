from klsa_search.analysis import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.evaluation.tuning import (
    FIRST_WORDS,
    MIN_TERMS,
    NEAREST,
    QUERIES,
    halve,
    judge_by_first_halves,
)
from klsa_search.indexing.build import build
from tests.evaluation.worlds import topical

ANALYZER = Analyzer(AnalysisSettings(language="none"))


def test_a_document_is_halved_and_searched_by_its_title():
    words = [f"w{number}" for number in range(MIN_TERMS)]
    documents = [
        Document(id="long", title="Title", text=" ".join(words)),
        Document(id="untitled", text=" ".join(reversed(words))),
        Document(id="short", title="Title", text=" ".join(words[1:])),
    ]
    halves = halve(documents, ANALYZER)
    half = MIN_TERMS // 2
    assert [document.id for document in halves.first] == ["long", "untitled"]
    assert halves.first[0].title == "Title"
    assert halves.first[0].text.split() == words[:half]
    assert halves.second[0].title == ""
    assert halves.second[0].text.split() == words[half:]
    asked = {query.id: query.text.split() for query in halves.queries}
    assert asked == {"long": ["Title"], "untitled": words[::-1][:FIRST_WORDS]}


def test_the_sample_is_seeded_and_in_document_order():
    text = " ".join(f"w{number}" for number in range(MIN_TERMS))
    documents = [Document(id=str(number), text=text) for number in range(QUERIES + 50)]
    sample = [int(query.id) for query in halve(documents, ANALYZER).queries]
    assert len(sample) == QUERIES
    assert sample == sorted(sample)
    assert sample == [int(query.id) for query in halve(documents, ANALYZER).queries]
    assert sample != [int(query.id) for query in halve(documents, ANALYZER, seed=1).queries]


def test_no_document_is_nothing_to_ask():
    halves = halve([], ANALYZER)
    assert (halves.first, halves.second, halves.queries) == ((), (), ())


def test_documents_on_the_same_subject_are_relevant(tmp_path):
    halves = halve(topical(), ANALYZER)
    first = build(halves.first, name="first", home=tmp_path, language="none")
    judgements = judge_by_first_halves(halves, first)
    assert len(judgements) == len(halves.queries) * (NEAREST + 1)
    assert {j.document_id for j in judgements[:: NEAREST + 1]} == {q.id for q in halves.queries}
    same = [j.query_id[0] == j.document_id[0] for j in judgements]
    assert sum(same) > 0.95 * len(same)
