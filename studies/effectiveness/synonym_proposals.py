"""How many proposals of synonyms are right, in worlds where the right one is known.

A frequent word of the queries of a collection is replaced by a word that no document contains.
Invented visitors search with it and with up to two other words of their query, and open the first
relevant hit of the first ten; one in five opens any hit. If no hit is relevant they search again,
with the true word in half of the cases, else with any word of another query in its place. The
proposal is right if the true word is the first candidate; words that mean nearly the same count as
wrong. In other worlds, where no synonym is right, they always search again with any other word.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from klsa_search import Index
from klsa_search.analysis.languages import stop_list
from klsa_search.mining.synonym_proposals import SearchedQuery, propose_synonyms
from studies.effectiveness.kinds import task_of
from studies.effectiveness.measuring import Bench, Task, heading, row

NAMES: Final = ("cran", "cisi", "lisa", "awsdocs")
UNKNOWN: Final = "zzqunknown"
_WORDS: Final = 40
"""Words with a synonym, and as many without, of a collection."""

_QUERIES: Final = 6
_SESSIONS: Final = 4
"""Queries with a word, and visitors who search each of them."""

_HITS: Final = 10
_CARELESS: Final = 0.2
_REPHRASES: Final = 0.5


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has the counts by collection."""
    found = {name: _Visitors(bench, task_of(name, data)).measure() for name in names or NAMES}
    total = Counter[str]()
    for counts in found.values():
        total.update(counts)
    found["all"] = dict(total)
    heading("", "words", "proposed", "first is right", "words without synonym", "proposed")
    for name, counts in found.items():
        row(name, *(counts[key] for key in ("words", "proposed", "right", "empty", "wrong")))
    return found


class _Visitors:
    """Invented visitors of a collection."""

    def __init__(self, bench: Bench, task: Task) -> None:
        self._index: Index = bench.index(task, {})
        self._random = random.Random(1)
        self._relevant: dict[str, set[str]] = defaultdict(set)
        for judgement in task.judgements:
            if judgement.grade > 0:
                self._relevant[judgement.query_id].add(judgement.document_id)
        judged = [query for query in task.queries if self._relevant[query.id]]
        self._words = {query.id: self._known_words(query.text) for query in judged}
        self._any = sorted({word for words in self._words.values() for word in words.values()})

    def _documents(self, term: str) -> int:
        arrays = self._index.arrays
        number = arrays.vocabulary.numbers.get(term)
        return 0 if number is None else int(arrays.query_kernel.frequencies[number])

    def _known_words(self, text: str) -> dict[str, str]:
        ignored = stop_list(self._index.settings.language)
        written = ((term, word.lower()) for term, word in self._index.analyzer.written(text))
        return {
            term: word
            for term, word in written
            if term and word not in ignored and self._documents(term)
        }

    def measure(self) -> dict[str, int]:
        """Return counts of words and proposals."""
        queries: dict[str, list[str]] = defaultdict(list)
        for id_, words in self._words.items():
            for term in words:
                queries[term].append(id_)
        most = len(self._index) / 5
        hidden = [
            term
            for term, ids in sorted(queries.items())
            if len(ids) > 1 and 5 <= self._documents(term) <= most
        ]
        self._random.shuffle(hidden)
        counts = Counter[str]()
        for term in hidden[:_WORDS]:
            best = self._proposed(queries[term][:_QUERIES], term)
            right = best is not None and [*self._known_words(best)] == [term]
            counts.update(words=1, proposed=int(best is not None), right=int(right))
        ids = sorted(self._words)
        for _ in range(_WORDS):
            some = self._random.sample(ids, min(self._random.randint(1, _QUERIES), len(ids)))
            counts.update(empty=1, wrong=int(self._proposed(some, None) is not None))
        return dict(counts)

    def _proposed(self, ids: Sequence[str], hidden: str | None) -> str | None:
        """Return the first candidate after visitors wrote the unknown word for the hidden one."""
        searches: Counter[str] = Counter()
        replaced: dict[str, Counter[str]] = defaultdict(Counter)
        for id_ in [*ids] * _SESSIONS:
            words = self._words[id_]
            others = sorted((term for term in words if term != hidden), key=self._documents)[:2]
            context = " ".join(words[term] for term in others)
            query = f"{UNKNOWN} {context}".strip()
            searches[query] += 1
            if hidden is not None and self._opens(context, id_):
                continue
            is_true = hidden is not None and self._random.random() < _REPHRASES
            instead = words[hidden] if is_true and hidden else self._random.choice(self._any)
            following = f"{instead} {context}".strip()
            if self._opens(following, id_):
                searches[following] += 1
                replaced[query][following] += 1
        found = propose_synonyms(
            self._index,
            [SearchedQuery(query, count, replaced[query]) for query, count in searches.items()],
        )
        return next((each.candidates[0].synonym for each in found if each.word == UNKNOWN), None)

    def _opens(self, query: str, id_: str) -> bool:
        hits = self._index.search(query, _HITS, operators=False).hits
        if self._random.random() < _CARELESS:
            return bool(hits)
        return any(hit.id in self._relevant[id_] for hit in hits)
