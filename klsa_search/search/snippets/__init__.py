"""Cut snippets: the passages of texts that a hit shows."""
