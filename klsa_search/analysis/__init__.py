"""Analyse texts: terms with positions."""

from klsa_search.analysis.analyzer import LONGEST_WORD, Analyzer, Token
from klsa_search.analysis.detecting import detected
from klsa_search.analysis.languages import languages, named, stemmers
from klsa_search.analysis.numbering import LEFT_OUT, NumberedTexts, Numbering
from klsa_search.analysis.tokenizers import trust, trusting
from klsa_search.keywords import Tokenizer

__all__ = [
    "LEFT_OUT",
    "LONGEST_WORD",
    "Analyzer",
    "NumberedTexts",
    "Numbering",
    "Token",
    "Tokenizer",
    "detected",
    "languages",
    "named",
    "stemmers",
    "trust",
    "trusting",
]
