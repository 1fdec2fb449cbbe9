"""Sign-in by name and password, at a limited rate of attempts."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from time import monotonic
from typing import Final

from klsa_search.errors import InvalidApiKey, RateExceeded
from klsa_search.service.keys import Key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.middleware.limits import Rates
from klsa_search.service.passwords import is_password

BURST: Final = 10
PAUSE: Final = 30.0
"""Attempts that may follow each other, by a name and by an address, and seconds for each later."""


class SignIn:
    """Checks names and passwords; for use by one event loop, but for `check`.

    clock  returns seconds
    """

    def __init__(self, keys: Keys, clock: Callable[[], float] = monotonic) -> None:
        self._keys = keys
        self._attempts = Rates(1 / PAUSE, clock, burst=BURST)

    def take(self, name: str, address: str) -> None:
        """Count an attempt; RateExceeded if there were too many with a name, or of an address.

        Names are counted whether or not somebody has them.
        """
        wait = max(
            self._attempts.wait(f"address {address}"), self._attempts.wait(f"name {name.lower()}")
        )
        if wait:
            raise RateExceeded(
                f"too many attempts to sign in; try again in {ceil(wait)} s", after=ceil(wait)
            )

    def check(self, name: str, password: str) -> Key:
        """Return the person; InvalidApiKey, which does not say what is wrong. Cost: 0.2 s."""
        person = self._keys.person(name)
        if not is_password(password, None if person is None else person.password):
            person = None
        if person is None or person.is_expired():
            raise InvalidApiKey("wrong name or password; ask the person who added you for another")
        return person
