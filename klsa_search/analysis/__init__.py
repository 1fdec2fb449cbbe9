"""Analyse: text to terms with positions."""

from klsa_search.analysis.analyzer import LONGEST_WORD, Analyzer, Token
from klsa_search.analysis.languages import languages, stemmers
from klsa_search.analysis.numbering import NumberedTexts, Numbering

__all__ = [
    "LONGEST_WORD",
    "Analyzer",
    "NumberedTexts",
    "Numbering",
    "Token",
    "languages",
    "stemmers",
]
