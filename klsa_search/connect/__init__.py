"""Connect: an index where its users already are, one module a connector, each with its extra."""

__all__: list[str] = []  # each module is a face of its own: it needs an extra
