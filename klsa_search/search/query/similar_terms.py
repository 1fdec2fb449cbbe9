"""Words that are spelt like another, and how likely one is typed instead of the other.

They are terms, or words of synonyms and rules, one of which a misspelt word may be although no
document has it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import OSA

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.terms import LONGEST_WORD
from klsa_search.core.array_types import Numbers
from klsa_search.kernels.vocabulary import code_points
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.term_dictionary import ENDING, TermDictionary, most_frequent_case

Distances = npt.NDArray[np.float64]

_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS: Final = frozenset(
    frozenset(pair)
    for upper, lower in [*pairwise(_ROWS), *((row, row[1:]) for row in _ROWS)]
    for pair in [*zip(upper, lower, strict=False), *zip(upper[1:], lower, strict=False)]
) | frozenset(
    frozenset(pair)
    for pair in (
        *("ae", "ai", "ei", "eo", "iy", "ou", "yz", "ck", "sz"),
        *("bp", "dt", "fv", "gk"),
    )
)
"""Letters next to each other on a keyboard, or alike in sound."""

_ALIKE_FIRST: Final = {"c": "k", "k": "c"}
"""Letters that are alike in sound where a word begins: *kalender*."""

MIN_WORD_LETTERS: Final = 4
"""Letters of a word that is corrected, at least: shorter words have too many neighbours."""

MIN_FITTING_LETTERS: Final = 3
"""Letters of a word that is corrected if documents contain no word of the query, or if the
correction fits its other words, at least."""

SHORT_WORD: Final = 5
"""Letters of a word that has one edit, at most."""

SLIP: Final = 3.0
MISSPELT: Final = 4.0
UNLIKELY: Final = 5.5
"""Costs of an edit, -ln of how often it happens: two letters change places or one is doubled; one
is missing, added or replaced by a similar one; another one is replaced."""

UNFINISHED: Final = 1.0
MISSING_LETTER: Final = 0.3
"""Costs of a word that is not typed to its end, and of each letter that is missing."""

BOTH: Final = 1.5
"""Further cost of a word that is misspelt as well."""


class WrittenTerm(NamedTuple):
    """A term as documents write it, and the cost of what is typed instead."""

    text: str
    cost: float


class SimilarTerms:
    """Finds the terms of a snapshot that are spelt like a word; thread-safe."""

    def __init__(
        self, snapshot: Snapshot, analyzer: Analyzer, term_dictionary: TermDictionary
    ) -> None:
        self._analyzer, self._runs = analyzer, snapshot.vocabulary.runs.runs
        self._names, self._term_dictionary = snapshot.vocabulary.terms, term_dictionary

    def near(self, word: str, edits: int) -> tuple[Numbers, Distances]:
        """Return terms near the stem of a word, or near as much of the word as they are long.

        word  folded
        With the number of edits, and half a one for each letter by which the term is shorter.
        Cost: 20 ns for each term with the same first letter. None is near a word of more than 64
        letters.
        """
        stem = self._analyzer.term(word)
        length, shortest = len(word), max(len(word) - ENDING, 2)
        around = max(len(stem) - edits, 1), len(stem) + edits
        compared = [(word, (shortest, length + edits), 0, 0.5), (stem, around, None, 0.0)]
        if length <= SHORT_WORD:  # longer ones may have two edits
            # A letter is missing before the ending that a stem lacks: *mose* and *mous(e)*.
            compared.append((word, (shortest + 1, length), 1, 0.5))
        return _nearest(
            (
                run.numbers[positions],
                distances + missing * np.maximum(length - run.lengths[positions], 0),
            )
            for run in self._runs
            for text, lengths, fewer, missing in compared
            for positions, distances in (
                run.letters.near(same.start, same.stop, code_points(text), lengths, edits, fewer)
                for same in map(run.beginning_with, first_letters(word))
            )
        )

    def begun(self, beginning: str) -> tuple[Numbers, Distances]:
        """Return terms with a beginning at one edit of a folded text at most: see `near`."""
        begun = list[tuple[Numbers, Numbers]]()
        letters, size = code_points(beginning), len(beginning)
        for run in self._runs:
            same = run.beginning_with(beginning[:1])
            for length in range(max(size - 1, 1), size + 2):
                positions, distances = run.letters.near(
                    same.start, same.stop, letters, (1, LONGEST_WORD), 1, beginning=length
                )
                begun.append((run.numbers[positions], distances))
        return _nearest(begun)

    def priors(self, terms: Numbers, distances: Distances) -> dict[int, float]:
        """Return scores of terms by their frequency and number of edits."""
        frequencies = self._term_dictionary.frequencies[terms]
        scores = np.log(np.maximum(frequencies, 1)) - 3.5 * distances
        return dict(zip(terms.tolist(), scores.tolist(), strict=True))

    def best(self, score_of: Mapping[int, float], count: int) -> list[int]:
        """Return the best terms; equal ones by name, as later numbers differ in partitions."""
        if len(score_of) > count:  # so that few are ordered by name
            least = nlargest(count, score_of.values())[-1]
            score_of = {term: score for term, score in score_of.items() if score >= least}
        names = self._names
        return sorted(score_of, key=lambda term: (-score_of[term], names[term]))[:count]

    def as_written(
        self, word: str, term: int, edits: int, evidence: Evidence, *, unfinished: bool = False
    ) -> WrittenTerm | None:
        """Return a term in the form that a folded word probably means; None if it is too far."""
        forms = self._term_dictionary.forms(term, evidence)
        counts, costs = Counter[str](), list[tuple[float, str]]()
        for form, count in forms.items():
            counts[form.casefold()] += count
        for form in counts:
            folded = self._analyzer.folded(form)
            costs.append((cost(word, folded, edits), form))
            if unfinished and len(word) >= MIN_WORD_LETTERS:
                missing = unfinished_cost(word, folded) + BOTH
                costs += (
                    (cost(word, folded[:length], 1) + missing, form)
                    for length in range(len(word) - 1, min(len(word) + 2, len(folded)))
                )
        least, form = min(
            costs,
            key=lambda one: (one[0] - math.log(counts[one[1]]), one),
            default=(math.inf, ""),
        )
        return None if math.isinf(least) else WrittenTerm(most_frequent_case(forms, form), least)


def first_letters(word: str) -> Iterable[str]:
    """Return beginnings of what is meant by a word: errors rarely change the first letter."""
    beginnings = (word[:1], word[1::-1], _ALIKE_FIRST.get(word[:1], ""))
    return filter(None, dict.fromkeys(beginnings))


def _nearest(
    candidates: Iterable[tuple[Numbers, npt.NDArray[np.generic]]],
) -> tuple[Numbers, Distances]:
    """Return terms, each once, with the least of their distances."""
    terms, distances = map(np.concatenate, zip(*candidates, strict=True))
    order = np.lexsort((distances, terms))
    first = np.diff(terms[order], prepend=-1) > 0
    return terms[order][first], distances[order][first].astype(np.float64)


def cost(word: str, meant: str, edits: int) -> float:
    """Return how unlikely a word is typed instead of another: infinite above some edits.

    Words that begin differently are infinitely unlike, unless their first letters changed places or
    sound alike.

    >>> cost("pritner", "printer", 1), cost("printre", "printing", 1)
    (3.0, inf)
    """
    if meant[0] not in (word[0], _ALIKE_FIRST.get(word[0])) and word[:2] != meant[1::-1]:
        return np.inf
    distance = OSA.distance(word, meant, score_cutoff=edits)
    if distance == 0 or distance > edits:
        return np.inf if distance else 0.0
    if distance > 1:
        is_ending = word.startswith(meant) or meant.startswith(word)  # perhaps another form
        return MISSPELT + distance if is_ending else MISSPELT * distance + 1
    at = next((at for at, pair in enumerate(zip(word, meant, strict=False)) if len({*pair}) > 1),
              min(len(word), len(meant)))  # fmt: skip
    if len(word) != len(meant):
        longer = max(word, meant, key=len)
        return SLIP if longer[at] in longer[max(at - 1, 0) : at] else MISSPELT
    if word[at + 1 :] != meant[at + 1 :]:
        return SLIP
    return MISSPELT if frozenset((word[at], meant[at])) in _NEIGHBOURS else UNLIKELY


def unfinished_cost(word: str, meant: str) -> float:
    """Return the cost of a word that is the beginning of another one, or about that."""
    return UNFINISHED + MISSING_LETTER * max(len(meant) - len(word), 0)


SHORTEST: Final = 4
"""Letters of a misspelt word that may be one of them, at least."""


class ConfiguredWord(NamedTuple):
    """A word of synonyms or rules.

    folded   without case and accents
    written  as the user gave it
    meant    terms of each of the texts that are searched as well; none for a word of rules alone
    """

    folded: str
    written: str
    meant: tuple[tuple[str, ...], ...]


class ConfiguredWords:
    """The words of the synonyms and rules of an index; immutable.

    synonyms  what is searched as well, by words or sequences of words
    queries   of rules
    Cost: the analysis of each.
    """

    def __init__(
        self, synonyms: Mapping[str, Iterable[str]], queries: Iterable[str], analyzer: Analyzer
    ) -> None:
        words: dict[str, ConfiguredWord] = {}
        for text, meant in (*synonyms.items(), *((query, ()) for query in queries)):
            terms = tuple(filter(None, (tuple(analyzer.terms(one)) for one in meant)))
            for word in analyzer.map_words(text, str, str):
                folded = analyzer.folded(word)
                if folded.isalpha():
                    before = words.get(folded, ConfiguredWord(folded, word, ()))
                    words[folded] = before._replace(meant=before.meant + terms)
        self._with_first = defaultdict[str, list[ConfiguredWord]](list)
        for configured in words.values():
            self._with_first[configured.folded[0]].append(configured)

    def near(
        self, word: str, edits: int, *, with_synonyms: bool
    ) -> Iterator[tuple[float, ConfiguredWord]]:
        """Yield the other words within some edits of a folded word, with their costs.

        with_synonyms  whether those of synonyms count
        Cost: 1 µs for each word with the same first letter.
        """
        if len(word) < SHORTEST:
            return
        for first in {beginning[0] for beginning in first_letters(word)}:
            for configured in self._with_first.get(first, ()):
                if configured.folded == word:
                    continue  # a rule for a misspelt word does not correct it
                cost_ = cost(word, configured.folded, edits)
                if cost_ < np.inf and (with_synonyms or not configured.meant):
                    yield cost_, configured
