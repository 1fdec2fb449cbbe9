"""The parts of an index, its generation or partitions: reading, writing, searching and merging."""
