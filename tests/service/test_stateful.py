"""Any sequence of requests leaves the service in the state of a plain Python model."""

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from klsa_search.indexing import refit
from klsa_search.indexing.build import build
from klsa_search.service.admission import Writes
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.storage.maintenance import rollback, undo_writes
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

WORDS = ("wing", "heat", "layer", "ice", "snow", "wolke")
COLOURS = ("red", "blue", "light green")
FIELDS = ("colour:keyword", "year:number")

words = st.sampled_from(WORDS)
ids = st.sampled_from([str(number) for number in range(8)] + ["a/b c?%", "ü"])
contents = st.fixed_dictionaries(
    {"text": st.lists(words, min_size=1, max_size=4).map(" ".join)},
    optional={"colour": st.sampled_from(COLOURS), "year": st.integers(1990, 1994)},
)
documents = st.dictionaries(ids, contents, min_size=1, max_size=4)
START = {
    str(number): {"text": f"{word} ice", "year": 1990 + number} for number, word in enumerate(WORDS)
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """An index directory that every run begins with a copy of."""
    home = tmp_path_factory.mktemp("stateful")
    records = [{"id": id_, **each} for id_, each in START.items()]
    plain = {"stop_words": "none", "stemmer": "none", "fields": FIELDS}
    build(records, name="index", home=home, **plain).close()
    return home


def machine_over(built):
    class Service(RuleBasedStateMachine):
        """The service, and what it should know: documents in their order, and states before."""

        @initialize()
        def start(self):
            self.folder = tempfile.TemporaryDirectory()
            self.home = Path(shutil.copytree(built, Path(self.folder.name) / "home"))
            self.documents, self.before = dict(START), []
            self.former = None
            self.synonyms, self.aliased, self.judged = {}, False, {}
            self.begin()

        def begin(self):
            self.open_indexes = OpenIndexes(self.home, interval=0)
            self.client = AppClient(app_of_indexes(self.open_indexes, writes=Writes()))
            self.client.__enter__()

        def end(self):
            self.client.__exit__(None, None, None)
            self.open_indexes.close()

        def teardown(self):
            if hasattr(self, "folder"):
                self.end()
                self.folder.cleanup()

        def ask(self, method, path, status=200, **asked):
            answer = self.client.request(method, path, **asked)
            assert answer.status_code == status, answer.text
            return answer

        def search(self, **parameters):
            asked = {"index": "index", "ranker": "bm25", "k": 100, **parameters}
            return self.ask("GET", "/search", params=asked).json()

        def matching(self, word):
            """Ids of documents that contain the word or a synonym of it."""
            wanted = {word, *self.synonyms.get(word, ())}
            return {i for i, each in self.documents.items() if wanted & {*each["text"].split()}}

        def written(self, puts=(), deletes=()):
            """Note a batch of writes."""
            self.before.append(dict(self.documents))
            for id_ in deletes:
                self.documents.pop(id_, None)
            for id_, each in dict(puts).items():
                self.documents.pop(id_, None)
                self.documents[id_] = each

        @rule(some=documents)
        def add(self, some):
            records = [{"id": id_, **each} for id_, each in some.items()]
            self.ask("POST", "/indexes/index/documents", json=records)
            self.written(some)

        @rule(some=documents)
        def add_lines(self, some):
            lines = [json.dumps({"id": id_, **each}) for id_, each in some.items()]
            answer = self.ask(
                "POST",
                "/indexes/index/documents",
                content="\n".join([*lines, "no JSON"]),
                headers={"Content-Type": "application/x-ndjson"},
            )
            told = [json.loads(line)["ok"] for line in answer.text.splitlines()]
            assert told == [True] * len(some) + [False]
            self.written(some)

        @rule(id_=ids, content=contents)
        def put(self, id_, content):
            self.ask("PUT", f"/indexes/index/documents/{quote(id_, safe='')}", json=content)
            self.written({id_: content})

        @rule(some=st.lists(ids, min_size=1, max_size=4, unique=True))
        def delete(self, some):
            self.ask("POST", "/indexes/index/documents/delete-batch", json=some)
            self.written(deletes=some)

        @rule(id_=ids)
        def delete_one(self, id_):
            self.ask("DELETE", f"/indexes/index/documents/{quote(id_, safe='')}")
            self.written(deletes=[id_])

        @rule()
        def refuse(self):
            """A batch with one bad document is refused as a whole."""
            records = [{"id": "0", "text": "new"}, {"id": " ", "text": "new"}]
            self.ask("POST", "/indexes/index/documents", 422, json=records)

        @rule(word=words)
        def find(self, word):
            found = self.search(q=word)
            assert {hit["id"] for hit in found["hits"]} == self.matching(word)
            assert found["total"] == len(self.matching(word))

        @rule(word=words, year=st.integers(1989, 1995))
        def filter(self, word, year):
            found = self.search(q=word, filter=f"year >= {year}")
            passing = {i for i, each in self.documents.items() if each.get("year", 0) >= year}
            assert {hit["id"] for hit in found["hits"]} == self.matching(word) & passing

        @rule(word=words)
        def count(self, word):
            found = self.search(q=word, facets="colour", k=1)
            counted = {each["value"]: each["count"] for each in found["facets"]["colour"]["values"]}
            colours = [self.documents[id_].get("colour") for id_ in self.matching(word)]
            assert counted == Counter(filter(None, colours))

        @rule(word=words)
        def sort(self, word):
            found = [hit["id"] for hit in self.search(q=word, sort="year:desc")["hits"]]
            years = [self.documents[id_].get("year", 0) for id_ in found]
            assert years == sorted(years, reverse=True)

        @rule(id_=ids)
        def read(self, id_):
            path = f"/documents/{quote(id_, safe='')}?index=index"
            answer = self.ask("GET", path, 200 if id_ in self.documents else 404)
            if id_ in self.documents:
                held = {"text": answer.json()["text"], **answer.json()["metadata"]}
                assert held == self.documents[id_]

        @rule(word=words, others=st.lists(words, max_size=2, unique=True))
        def set_synonyms(self, word, others):
            others = [each for each in others if each != word]
            self.synonyms = {word: others} if others else {}
            self.ask("PUT", "/indexes/index/synonyms", json={"synonyms": self.synonyms})

        @rule()
        def set_alias(self):
            self.ask("PUT", "/aliases/live", json={"index": "index"})
            self.aliased = True

        @rule()
        def delete_alias(self):
            self.ask("DELETE", "/aliases/live", 200 if self.aliased else 404)
            self.aliased = False

        @rule(word=words)
        def find_by_alias(self, word):
            path = f"/search?index=live&q={word}&ranker=bm25&k=100"
            answer = self.ask("GET", path, 200 if self.aliased else 404)
            if self.aliased:
                assert {hit["id"] for hit in answer.json()["hits"]} == self.matching(word)

        @rule(id_=ids, grade=st.integers(0, 2))
        def judge(self, id_, grade):
            body = {"q": "ice", "id": id_, "grade": grade}
            status = 200 if id_ in self.documents else 404
            self.ask("PUT", "/indexes/index/judgements", status, json=body)
            if id_ in self.documents:
                self.judged[id_] = grade

        @rule()
        def read_judgements(self):
            judged = self.ask("GET", "/indexes/index/judgements?q=ice").json()["queries"]
            assert [each["grades"] for each in judged] == [self.judged] * bool(self.judged)

        @precondition(lambda self: self.before)
        @rule()
        def undo(self):
            undo_writes(self.home / "index")
            self.documents = self.before.pop()

        @precondition(lambda self: self.documents)
        @rule()
        def refit(self):
            refit(self.home / "index").close()
            self.former = (dict(self.documents), list(self.before))
            self.before = []

        @precondition(lambda self: self.former)
        @rule()
        def roll_back(self):
            rollback(self.home / "index")
            self.documents, self.before = self.former
            self.former = None

        @rule()
        def restart(self):
            self.end()
            self.begin()

        @invariant()
        def knows_how_much_it_has(self):
            if hasattr(self, "folder"):
                assert self.ask("GET", "/indexes/index").json()["documents"] == len(self.documents)

    return Service


@pytest.mark.slow
def test_any_sequence_of_requests_leaves_it_as_the_model(built):
    examples = max(3, settings().max_examples // 20)
    run_state_machine_as_test(
        machine_over(built), settings=settings(max_examples=examples, stateful_step_count=20)
    )
