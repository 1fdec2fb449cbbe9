"""The query engine: ranking in C++, for one query or many."""
