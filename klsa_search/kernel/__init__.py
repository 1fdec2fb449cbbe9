"""Compare: features → Gram operator, query → kernel row."""

from klsa_search.kernel.gram import explicit_gram, implicit_gram
from klsa_search.kernel.postings import Postings

__all__ = ["Postings", "explicit_gram", "implicit_gram"]
