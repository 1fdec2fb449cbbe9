"""What the catalogue of an index holds."""

from klsa_search.storage.catalog_entry import read_entry
from klsa_search.storage.rules import stored_rules
from klsa_search.storage.synonyms import stored_synonyms


def read_rules(path):
    """Return the rules of the index at a path, in order."""
    with read_entry(path) as entry:
        return stored_rules(entry)


def read_synonyms(path):
    """Return the synonyms of the index at a path."""
    with read_entry(path) as entry:
        return stored_synonyms(entry)
