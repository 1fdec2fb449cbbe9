"""Weigh: terms → counts → features."""

from klsa_search.features.counting import Block
from klsa_search.features.counts import CountsBuilder, TermCounts
from klsa_search.features.vocabulary import Vocabulary

__all__ = ["Block", "CountsBuilder", "TermCounts", "Vocabulary"]
