"""Synonyms of the words of a query as further terms."""

from __future__ import annotations

from collections.abc import Callable

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
    """Add the terms of synonyms of plain words that the query does not contain, once each.

    term_of  returns the term of a word, "" for a word without one
    A synonym of several words counts only if documents contain all of them.
    """
    numbers = vocabulary.numbers
    parsed, added = set(builder.terms), set()
    of: dict[str, dict[Terms, None]] = {}
    plain_words = [(term_of(word), word) for word in builder.plain_words if word.number != NO_TERM]
    for first, after, others in synonyms.find([term for term, _ in plain_words]):
        words = " ".join(word.text for _, word in plain_words[first:after])
        if words in builder.synonyms_used:
            continue
        indexed = [other for other in others if all(term in numbers for term in other.terms)]
        if not indexed:
            continue
        builder.synonyms_used[words] = tuple(other.text for other in indexed)
        for term, word in plain_words[first:after]:
            key = term if term in numbers else word.text
            of.setdefault(key, {}).update(dict.fromkeys(other.terms for other in indexed))
            for other in indexed:
                builder.count(
                    word.number if word.number >= 0 else word.text,
                    tuple(numbers[term] for term in other.terms),
                )
        for term in (term for other in indexed for term in other.terms):
            if numbers[term] not in parsed:
                parsed.add(numbers[term])
                builder.terms.append(numbers[term])
                added.add(term)
    return SynonymExpansion(frozenset(added), {key: tuple(others) for key, others in of.items()})
