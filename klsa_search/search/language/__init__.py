"""The query language: from the text of a query to what is ranked by, and what may be answered."""

from klsa_search.search.language.language import Asked, Language
from klsa_search.search.language.lexicon import Lexicon
from klsa_search.search.language.synonyms import Synonyms
from klsa_search.search.language.understood import Relaxed, Understood

__all__ = ["Asked", "Language", "Lexicon", "Relaxed", "Synonyms", "Understood"]
