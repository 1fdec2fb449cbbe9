"""Client of a service, with the results and errors of the library.

`Client` blocks, and `AsyncClient` awaits; both have the same methods.
"""

from klsa_search.client.asynchronous import AsyncClient, AsyncRemoteIndex
from klsa_search.client.blocking import Client, RemoteIndex
from klsa_search.client.results import FederatedHit, FederatedResults, FileResult, IndexInfo
from klsa_search.core.service_reports import (
    Analytics,
    ClickedDocument,
    DayFigures,
    Job,
    QueryFigures,
    SearchFigures,
    SynonymCandidate,
    SynonymProposal,
)

__all__ = [
    "Analytics",
    "AsyncClient",
    "AsyncRemoteIndex",
    "ClickedDocument",
    "Client",
    "DayFigures",
    "FederatedHit",
    "FederatedResults",
    "FileResult",
    "IndexInfo",
    "Job",
    "QueryFigures",
    "RemoteIndex",
    "SearchFigures",
    "SynonymCandidate",
    "SynonymProposal",
]
