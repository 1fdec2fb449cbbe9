"""Keep: an index on disk, generation by generation."""
