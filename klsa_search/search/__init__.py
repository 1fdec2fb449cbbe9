"""Search: from queries to ranked hits."""
