"""Build and search an index with many processes, on one machine or several."""

__all__: list[str] = []
