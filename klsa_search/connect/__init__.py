"""Connectors to other tools: one module each, with an extra of its own."""

__all__: list[str] = []  # each module is imported by itself: it needs an extra
