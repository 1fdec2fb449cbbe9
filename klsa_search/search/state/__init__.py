"""The immutable state of an open generation, and how writes change it."""
