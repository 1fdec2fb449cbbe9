"""What the catalogue of an index holds."""

from klsa_search.storage.catalog_entry import read_entry
from klsa_search.storage.rules import stored_rules


def read_rules(path):
    """Return the rules of the index at a path, in order."""
    with read_entry(path) as entry:
        return stored_rules(entry)
