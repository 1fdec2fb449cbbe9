"""Text analysis: terms with positions."""

from klsa_search.analysis.analyzer import Analyzer, Token
from klsa_search.analysis.languages import languages, stemmers
from klsa_search.analysis.tokenizers import trust

__all__ = ["Analyzer", "Token", "languages", "stemmers", "trust"]
