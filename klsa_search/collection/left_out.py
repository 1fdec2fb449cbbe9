"""What reading left out, as warnings of the logger `klsa_search`."""

from __future__ import annotations

import logging

from klsa_search.collection.opened import OpenedCollection

_log = logging.getLogger(__name__)


def warn_of_left_out(collection: OpenedCollection) -> None:
    """Warn of what the last pass over the documents skipped, did not read, or numbered.

    For who has opened a collection for somebody who has but the source; a collection that one has
    opened oneself says it itself.
    """
    name, problems, unread = collection.name, collection.problems, collection.unread
    if problems.count:
        _log.warning("%s: %d skipped; the first: %s", name, problems.count, problems.reasons[0])
    if unread.count:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(unread.kinds.items()))
        first = next(iter(unread.first.values()))
        _log.warning("%s: %d not read (%s); the first: %s", name, unread.count, kinds, first)
    if collection.numbered:
        _log.warning(
            "%s: the documents of %s have no id and are numbered; name a column of ids by columns=",
            name,
            ", ".join(collection.numbered),
        )
