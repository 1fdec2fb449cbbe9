"""Errors of the package. Each message says what failed, why, and how to fix it."""

from __future__ import annotations


class KlsaError(Exception):
    """Base class of all errors of klsa-search.

    `code` is stable, for programs; `message` is for people; `field` names the argument at fault, or
    is None; `added` is the number of documents that a call in batches has added before it failed.

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
        self.added = 0


class SettingsError(KlsaError):
    """An unknown setting, or one outside its limits."""

    code = "bad_settings"


class CollectionError(KlsaError):
    """A source that cannot be read; the message has file, line and reason."""

    code = "bad_collection"


class BadDocument(CollectionError):
    """A document, or an ID, that cannot be stored."""

    code = "bad_document"


class FetchError(CollectionError):
    """A public collection that was not downloaded completely."""

    code = "fetch_failed"


class StoreError(KlsaError):
    """An index that cannot be used."""

    code = "index_unusable"


class IndexNotFound(StoreError):
    """No index has that name."""

    code = "index_not_found"


class IndexExists(StoreError):
    """An index or alias has that name already."""

    code = "index_exists"


class DocumentNotFound(StoreError):
    """The index has no document with that ID."""

    code = "document_not_found"


class TermNotFound(StoreError):
    """No document of the index contains the term."""

    code = "term_not_found"


class RuleNotFound(StoreError):
    """The index has no rule with that ID."""

    code = "rule_not_found"


class IndexBusy(StoreError):
    """Another process is changing the index; the message says which, and since when."""

    code = "index_busy"


class IndexDamaged(StoreError):
    """A file of the index is missing, cut short or changed."""

    code = "index_damaged"


class FormatUnsupported(StoreError):
    """The index has a format that this version cannot read."""

    code = "format_unsupported"


class PluginMissing(StoreError):
    """The index was built with a plug-in that is not installed, or with another version of it."""

    code = "plugin_missing"


class PartitionsUnsupported(StoreError):
    """The call does not support an index in partitions."""

    code = "partitions_unsupported"


class WritingRefused(StoreError):
    """The index or the service is read-only."""

    code = "writing_refused"


class QueryError(KlsaError):
    """A search parameter outside its limits."""

    code = "bad_query"


class InvalidApiKey(KlsaError):
    """A request without a valid API key; `sent` is true if it had one."""

    code = "invalid_api_key"

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class InsufficientScope(KlsaError):
    """A request that its API key does not allow; `scope` is the scope it needs."""

    code = "insufficient_scope"

    def __init__(self, message: str, *, scope: str = "", field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.scope = scope


class ServiceBusy(KlsaError):
    """A request that the service is too busy for.

    `after` is the number of seconds after which the client may try again.
    """

    code = "busy"

    def __init__(self, message: str, *, after: int = 1) -> None:
        super().__init__(message)
        self.after = after


class TooManyWrites(ServiceBusy):
    """A write that was refused because too many others wait."""

    code = "too_many_writes"


class RateExceeded(ServiceBusy):
    """A request above the rate limit of its API key or address."""

    code = "rate_exceeded"


class RequestTimedOut(KlsaError):
    """A request that took longer than the service allows."""

    code = "timed_out"


class BodyTooSlow(RequestTimedOut):
    """A request whose body arrives too slowly."""

    code = "body_too_slow"


class ClusterFailed(KlsaError):
    """A cluster that cannot be reached, or whose processes fail."""

    code = "cluster_failed"


class PartitionMissing(ClusterFailed):
    """A search that some or all partitions of the index did not answer."""

    code = "partition_missing"


class JobNotFound(KlsaError):
    """The service has no job with that ID, or no longer."""

    code = "job_not_found"


class AnalyticsOff(KlsaError):
    """The service records no analytics."""

    code = "analytics_off"


class ServiceFailed(KlsaError):
    """A service that cannot be reached, or refused; the message is that of the service."""

    code = "service_failed"


class ReplayFailed(KlsaError):
    """A run that cannot be recorded or replayed, or differs; the message says where."""

    code = "replay_failed"


class EmbedderFailed(KlsaError):
    """An embedder or reranker that fails, takes too long, or returns a wrong answer."""

    code = "embedder_failed"


class ArgumentError(KlsaError, ValueError):
    """An argument of the wrong type, or of an estimator outside its limits.

    It is a ValueError too, as scikit-learn expects.
    """

    code = "bad_argument"


class PluginFailed(KlsaError):
    """A plug-in that cannot be loaded, fails, or returns an invalid result."""

    code = "plugin_failed"


class MissingExtra(KlsaError):
    """A feature whose optional packages are not installed."""

    code = "missing_extra"
