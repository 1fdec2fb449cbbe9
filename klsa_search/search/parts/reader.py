"""What an open index reads: one generation, or the partitions of an index, in a present state."""

from klsa_search.search.parts.generation_reader import GenerationReader
from klsa_search.search.parts.partitions_reader import PartitionsReader

Reader = GenerationReader | PartitionsReader
"""Both have the methods of `StateReader`. Readers pickle by path, views by path and moment."""
