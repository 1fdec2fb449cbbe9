"""A search step by step: from its options to the page of results."""
