"""How many examples a property is tried with that costs more than others."""

from hypothesis import settings


def one_in(share: int) -> settings:
    """Return a decorator that tries one in so many of the examples of the profile, at least 3."""
    return settings(max_examples=max(3, settings().max_examples // share))
