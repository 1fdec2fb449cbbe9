"""Search: query → ranked hits."""
