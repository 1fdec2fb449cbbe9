"""The query language: from the text of a query to what is ranked by, and what may be answered."""

from klsa_search.search.language.interpretation import QueryInterpretation, Relaxed
from klsa_search.search.language.language import Language, ParsedQuery
from klsa_search.search.language.lexicon import Lexicon
from klsa_search.search.language.synonyms import Synonyms

__all__ = ["Language", "Lexicon", "ParsedQuery", "QueryInterpretation", "Relaxed", "Synonyms"]
