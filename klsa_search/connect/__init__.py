"""Connectors to other tools: one module, with its own extra, for each."""

__all__: list[str] = []  # import modules directly: each needs its extra
