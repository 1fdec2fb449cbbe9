"""Synonyms of the words of a query as further terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.search.engine.query_terms import NO_TERM
from klsa_search.search.query.builder import QueryBuilder, Word
from klsa_search.search.query.synonyms import SynonymExpansion, Synonyms, Terms


def add_synonyms(
    synonyms: Synonyms,
    builder: QueryBuilder,
    vocabulary: Vocabulary,
    term_of: Callable[[Word], str],
) -> SynonymExpansion:
    """Add the terms of synonyms of words that the query does not contain, once each.

    Words are the plain ones of the query, corrected, and then as documents also write them: joined,
    in parts or complete.
    term_of  returns the term of a word, "" for a word without one
    A synonym of several words counts only if documents contain all of them.
    """
    numbers = vocabulary.numbers
    parsed, added = set(builder.terms), set()
    of: dict[str, dict[Terms, None]] = {}

    def add(words: Sequence[Word], stands_for: Sequence[int | str] = ()) -> None:
        plain_words = [(term_of(word), word) for word in words if word.number != NO_TERM]
        for first, after, others in synonyms.find([term for term, _ in plain_words]):
            written = " ".join(word.text for _, word in plain_words[first:after])
            if written in builder.synonyms_used:
                continue
            indexed = [other for other in others if all(term in numbers for term in other.terms)]
            if not indexed:
                continue
            builder.synonyms_used[written] = tuple(other.text for other in indexed)
            keys = set(stands_for)
            for term, word in plain_words[first:after]:
                key = term if term in numbers else word.text
                of.setdefault(key, {}).update(dict.fromkeys(other.terms for other in indexed))
                if not stands_for:
                    keys.add(word.number if word.number >= 0 else word.text)
            for other in indexed:
                terms = tuple(numbers[term] for term in other.terms)
                for counted in keys:
                    builder.count(counted, terms)
                for term, number in zip(other.terms, terms, strict=True):
                    if number not in parsed:
                        parsed.add(number)
                        builder.terms.append(number)
                        added.add(term)

    add(builder.plain_words)
    for stands_for, words in builder.writings:
        add(words, stands_for)
    return SynonymExpansion(frozenset(added), {key: tuple(others) for key, others in of.items()})
