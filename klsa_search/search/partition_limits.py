"""What an index in partitions does not support, as methods that raise PartitionsUnsupported.

`docs/guides/partitions.md` lists it too; a test compares them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final, NoReturn

from klsa_search.errors import PartitionsUnsupported
from klsa_search.search.index import Index

UNSUPPORTED_METHODS: Final = MappingProxyType(
    {
        "scores": "scores of all documents",
        "arrays": "exploration, which needs all documents in one place",
        "restricted": "restricted views and tenant tokens",
        "set_rules": "rules",
        "put_rule": "rules",
        "delete_rule": "rules",
    }
)
"""Methods and properties of `Index`, and what they are part of."""


def unsupported(index: str, what: str) -> PartitionsUnsupported:
    """Return the error of an index in partitions that was called for something unsupported."""
    return PartitionsUnsupported(
        f"index `{index}` has partitions, which do not support {what}; build it with one partition"
    )


class UnsupportedInPartitions(Index):
    """An index whose methods of `UNSUPPORTED_METHODS` raise PartitionsUnsupported."""


def _refusal(what: str) -> Any:
    def refuse(self: UnsupportedInPartitions, *_: Any, **__: Any) -> NoReturn:
        raise unsupported(self.name, what)

    return refuse


for _name, _what in UNSUPPORTED_METHODS.items():
    _refused = _refusal(_what)
    _refused.__doc__ = f"Raise PartitionsUnsupported: partitions do not support {_what}."
    _refused.__name__ = _name
    _is_property = isinstance(getattr(Index, _name), property)
    setattr(UnsupportedInPartitions, _name, property(_refused) if _is_property else _refused)
