"""The states of an open index."""


def part_states(index):
    """Return the states of all partitions."""
    return [part.state for part in index._reader.parts.parts]  # noqa: SLF001
