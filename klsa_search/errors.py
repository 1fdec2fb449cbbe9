"""One tree of errors; each names the thing, the fact and the next step.

KlsaError
├── SettingsError         a setting outside its limits
├── CollectionError       a source that cannot be read as it stands
│   ├── BadDocument       a document that cannot be kept
│   └── FetchError        a public collection that could not be downloaded
├── StoreError            an index directory that cannot be used
│   ├── IndexNotFound
│   ├── DocumentNotFound
│   ├── TermNotFound
│   ├── IndexBusy         an index that another process is changing
│   ├── IndexDamaged
│   ├── FormatUnsupported
│   └── WritingRefused    an index, or a service, that takes no writes
├── QueryError            a search parameter outside its limits
├── InvalidApiKey            a request without a key that counts
├── InsufficientScope          a request for more than its key allows
├── ServiceBusy           a request that the service has no room for now
│   ├── TooManyWrites     one of more writes than the disk takes
│   └── RateExceeded      one of more requests than its key may make
├── RequestTimedOut       a request that took longer than the service may
│   └── BodyTooSlow       a request whose body comes too slowly
├── ClusterFailed         a cluster that is not there, or whose processes die
│   └── ShardMissing      a search without an answer of some shards
├── ServiceFailed         a service that was asked and did not answer
├── ReplayFailed          a run that is not what was recorded, or cannot be replayed
├── ArgumentError         an argument of an estimator outside its limits; a ValueError too
└── MissingExtra          a feature whose optional packages are not installed
"""

from __future__ import annotations


class KlsaError(Exception):
    """Root of every error a user can cause or meet.

    `code` is a stable word for programs; `field` names the argument, if there is one.

    >>> try:
    ...     klsa.open_index("index/nothing")
    ... except KlsaError as error:
    ...     print(error.code)
    index_not_found
    """

    code = "error"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class SettingsError(KlsaError):
    """A setting outside its limits."""

    code = "bad_settings"


class CollectionError(KlsaError):
    """A source that cannot be read: the message says file, line and reason."""

    code = "bad_collection"


class BadDocument(CollectionError):
    """A document that cannot be kept as it is, or an id."""

    code = "bad_document"


class FetchError(CollectionError):
    """A public collection that could not be downloaded whole and unchanged."""

    code = "fetch_failed"


class StoreError(KlsaError):
    """An index directory that cannot be used as it stands."""

    code = "index_unusable"


class IndexNotFound(StoreError):
    """No index of that name."""

    code = "index_not_found"


class DocumentNotFound(StoreError):
    """No document of that id in the index."""

    code = "document_not_found"


class TermNotFound(StoreError):
    """No term of that text in the index."""

    code = "term_not_found"


class IndexBusy(StoreError):
    """Another process is changing the index: the message says which, and since when."""

    code = "index_busy"


class IndexDamaged(StoreError):
    """A file of the index is missing, cut short or changed."""

    code = "index_damaged"


class FormatUnsupported(StoreError):
    """The index was written in a format this version does not read."""

    code = "format_unsupported"


class WritingRefused(StoreError):
    """The index, or the service, takes no writes."""

    code = "writing_refused"


class QueryError(KlsaError):
    """A search parameter outside its limits."""

    code = "bad_query"


class InvalidApiKey(KlsaError):
    """A request without a key that counts; `sent` if it had one."""

    code = "invalid_api_key"

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class InsufficientScope(KlsaError):
    """A request for more than its key allows; `scope` is what it needs."""

    code = "insufficient_scope"

    def __init__(self, message: str, *, scope: str, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.scope = scope


class ServiceBusy(KlsaError):
    """A request that the service has no room for now; `leaving` if it will have none any more.

    `after` is in how many seconds it may be asked again.
    """

    code = "busy"

    def __init__(self, message: str, *, leaving: bool = False, after: int = 1) -> None:
        super().__init__(message)
        self.leaving = leaving
        self.after = after


class TooManyWrites(ServiceBusy):
    """A write that comes while as many wait as the service takes."""

    code = "too_many_writes"


class RateExceeded(ServiceBusy):
    """A request of a client that asks more often than it may."""

    code = "rate_exceeded"


class RequestTimedOut(KlsaError):
    """A request that took longer than the service may."""

    code = "timed_out"


class BodyTooSlow(RequestTimedOut):
    """A request whose client sends its body more slowly than it may."""

    code = "body_too_slow"


class ClusterFailed(KlsaError):
    """A cluster that cannot be reached, or whose processes do not do what they are for."""

    code = "cluster_failed"


class ShardMissing(ClusterFailed):
    """A search without one of the shards of its index, or all."""

    code = "shard_missing"


class ServiceFailed(KlsaError):
    """A service that was asked and cannot be reached, or refuses: its own words."""

    code = "service_failed"


class ReplayFailed(KlsaError):
    """A run that cannot be recorded or replayed, or came out as another: what differs first."""

    code = "replay_failed"


class ArgumentError(KlsaError, ValueError):
    """An argument of an estimator outside its limits; scikit-learn expects a ValueError."""

    code = "bad_argument"


class MissingExtra(KlsaError):
    """A feature whose optional packages are not installed."""

    code = "missing_extra"
