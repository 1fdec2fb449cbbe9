"""The query engine: compiled ranking, for one query or many."""
