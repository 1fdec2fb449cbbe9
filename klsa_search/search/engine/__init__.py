"""The query engine: compiled ranking, for one query or many."""

from klsa_search.search.engine.engine import Engine
from klsa_search.search.engine.expanding import DEEP, ExpandingEngine
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.record import TopDocs
from klsa_search.search.engine.seeds import Mix

__all__ = ["DEEP", "Engine", "ExpandingEngine", "Mask", "Mix", "TopDocs"]
