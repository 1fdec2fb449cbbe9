"""Suggest: what somebody who types may be about to ask for."""

from klsa_search.search.suggest.suggesting import Suggesting
from klsa_search.search.suggest.suggestion import Suggestion
from klsa_search.search.suggest.titles import Titles

__all__ = ["Suggesting", "Suggestion", "Titles"]
