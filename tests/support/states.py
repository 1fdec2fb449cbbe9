"""The states of an open index."""


def part_states(index):
    """Return the states of all partitions."""
    return [*index._reader.parts.local.parts]  # noqa: SLF001
