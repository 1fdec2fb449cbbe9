"""Needles: sentences with rare pairs of words, hidden in texts of 10 to 500 pages.

Texts are made of stories of Reuters-21578. Each of the two words of a pair occurs in 2 to 40
stories, never both in one. Each pair is in one sentence, at a random sentence boundary, and is the
query; texts have one needle for every few pages. The passage with the sentence should come first,
and so should its document.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from klsa_search import Index
from klsa_search.analysis import Analyzer
from klsa_search.collection import Document
from studies.datasets import read_reuters, reuters_folder
from studies.effectiveness.measuring import Bench, Task, heading, row

NEEDLES: Final = 2000
PAGES: Final = (10, 20, 50, 100, 200, 500)
WORDS_OF_PAGE: Final = 300
DOCUMENTS: Final = 500
"""Needles whose documents are ranked, for each weight."""

WEIGHTS: Final = (0.0, 0.5, 1.0)
_FREQUENCIES: Final = range(2, 41)
_SENTENCES: Final = (
    "The {} was kept behind the {} until the auditors came.",
    "Nobody had expected a {} in the same room as the {}.",
    "He wrote that {} and {} should be counted together.",
    "According to the manual, the {} comes before the {}.",
)
_WORD: Final = re.compile(r"[a-z]{5,12}")
_BOUNDARY: Final = re.compile(r"(?<=[a-z]\.)\s+(?=[A-Z])")

Ranker = Literal["bm25", "klsa"]
RANKERS: Final[tuple[Ranker, ...]] = ("bm25", "klsa")


class Needle(NamedTuple):
    """A sentence in a text, and the words by which it is searched."""

    words: tuple[str, str]
    sentence: str
    document: str
    begin: int


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print; JSON has the ranks of all needles."""
    stories = [story.text for story in read_reuters(reuters_folder()) if story.text]
    documents, needles = haystack(stories, NEEDLES)
    index = bench.index(Task("needles", documents, [], []), {})
    found: dict[str, Any] = {"documents": len(documents), "needles": len(needles)}
    heading("", "passage first", "among 3", "among 10", *(f"document, w = {w:g}" for w in WEIGHTS))
    step = max(len(needles) // DOCUMENTS, 1)
    for ranker in RANKERS:
        ranks = [passage_rank(index, needle, ranker) for needle in needles]
        firsts = {
            f"{weight:g}": [is_document_first(index, n, ranker, weight) for n in needles[::step]]
            for weight in WEIGHTS
        }
        found[ranker] = {"passages": ranks, "documents": firsts}
        shares = (_share(0 < rank <= depth for rank in ranks) for depth in (1, 3, 10))
        row(ranker, *shares, *map(_share, firsts.values()))
    print()
    found["by_pages"] = _print_by_pages(documents, needles, found)
    return found


def haystack(stories: Sequence[str], count: int) -> tuple[list[Document], list[Needle]]:
    """Return texts of stories with needles, as many for each page in all of them."""
    made = random.Random(0)
    pairs = _pairs(stories, count, made)
    remaining = iter(made.sample(list(stories), len(stories)))
    texts: list[list[str]] = []
    try:
        while True:
            for pages in PAGES:
                texts.append(_sentences(remaining, pages * WORDS_OF_PAGE))
    except StopIteration:
        pass  # all stories are used
    places = made.choices(range(len(texts)), weights=list(map(len, texts)), k=len(pairs))
    hidden: dict[int, list[tuple[str, tuple[str, str]]]] = {}
    for place, words in zip(places, pairs, strict=True):
        sentence = made.choice(_SENTENCES).format(*words)
        hidden.setdefault(place, []).append((sentence, words))
    documents, needles = [], []
    for number, sentences in enumerate(texts):
        id_ = f"text{number}"
        for sentence, _ in hidden.get(number, []):
            sentences.insert(made.randrange(1, len(sentences)), sentence)
        text = " ".join(sentences)
        documents.append(Document(id=id_, title=f"Text {number}", text=text))
        needles += [
            Needle(words, sentence, id_, text.index(sentence))
            for sentence, words in hidden.get(number, [])
        ]
    return documents, needles


def _pairs(stories: Sequence[str], count: int, made: random.Random) -> list[tuple[str, str]]:
    """Return pairs of rare words that have no story in common; each word is in one pair.

    Words are counted by stem, as they are searched.
    """
    analyzer = Analyzer()
    stories_of: dict[str, set[int]] = {}
    word_of: dict[str, str] = {}
    for number, story in enumerate(stories):
        for word in re.findall(r"[A-Za-z]+", story):
            term = analyzer.term(word.lower())
            stories_of.setdefault(term, set()).add(number)
            if _WORD.fullmatch(word):
                word_of[term] = word
    rare = sorted(term for term in word_of if len(stories_of[term]) in _FREQUENCIES)
    made.shuffle(rare)
    pairs = zip(rare[::2], rare[1::2], strict=False)
    disjoint = [pair for pair in pairs if not stories_of[pair[0]] & stories_of[pair[1]]]
    return [(word_of[one], word_of[other]) for one, other in disjoint[:count]]


def _sentences(stories: Iterable[str], words: int) -> list[str]:
    """Return the sentences of the next stories with so many words; StopIteration without more."""
    sentences: list[str] = []
    counted = 0
    following = iter(stories)
    while counted < words:
        story = next(following)
        counted += len(story.split())
        sentences += _BOUNDARY.split(story)
    return sentences


def passage_rank(index: Index, needle: Needle, ranker: Ranker) -> int:
    """Return the rank of the passage with a needle, 0 if it is not among the first ten."""
    end = needle.begin + len(needle.sentence)
    results = index.search(" ".join(needle.words), 10, group="passage", ranker=ranker)
    for hit in results:
        begin, after = hit.span or (0, 0)
        if hit.document_id == needle.document and begin < end and needle.begin < after:
            return hit.rank
    return 0


def is_document_first(index: Index, needle: Needle, ranker: Ranker, weight: float) -> bool:
    """Return whether the document of a needle comes first."""
    doc_ids, _ = index.rank(" ".join(needle.words), 1, ranker=ranker, passage_weight=weight)
    return index.ids(doc_ids) == [needle.document]


def _print_by_pages(
    documents: Sequence[Document], needles: Sequence[Needle], found: Mapping[str, Any]
) -> dict[str, Any]:
    """Print the shares of passages that come first by the length of the text."""
    pages_of = {each.id: PAGES[number % len(PAGES)] for number, each in enumerate(documents)}
    shares: dict[str, Any] = {}
    heading("pages", "needles", *RANKERS)
    for pages in PAGES:
        those = [n for n, needle in enumerate(needles) if pages_of[needle.document] == pages]
        ranks = [found[ranker]["passages"] for ranker in RANKERS]
        shares[str(pages)] = [_share(of_ranker[n] == 1 for n in those) for of_ranker in ranks]
        row(pages, len(those), *shares[str(pages)])
    return shares


def _share(values: Iterable[bool]) -> str:
    held = list(values)
    return f"{sum(held) / max(len(held), 1):.1%}"
