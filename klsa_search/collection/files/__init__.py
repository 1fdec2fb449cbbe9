"""Files people have, as documents: one module a kind, and what all of them give."""

from klsa_search.collection.files.kinds import LACKING, is_code, kind_of
from klsa_search.collection.files.reading import documents, paths

__all__ = ["LACKING", "documents", "is_code", "kind_of", "paths"]
