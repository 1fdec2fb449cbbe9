"""Explore an index: similar documents, related terms, duplicates, clusters, map, classes."""

from klsa_search.mining.classification import Classification, classify, classify_texts
from klsa_search.mining.clusters import Cluster, Clustering, cluster
from klsa_search.mining.duplicates import Duplicate, DuplicateGroup, duplicates
from klsa_search.mining.map import DocumentMap, MapCluster, document_map
from klsa_search.mining.related_terms import RelatedTerm, StrongTerm, related, strongest_terms
from klsa_search.mining.similar import (
    KERNELS,
    Spectrum,
    expansion_rows,
    kernel_rows,
    similar,
    spectrum,
)

__all__ = [
    "KERNELS",
    "Classification",
    "Cluster",
    "Clustering",
    "DocumentMap",
    "Duplicate",
    "DuplicateGroup",
    "MapCluster",
    "RelatedTerm",
    "Spectrum",
    "StrongTerm",
    "classify",
    "classify_texts",
    "cluster",
    "document_map",
    "duplicates",
    "expansion_rows",
    "kernel_rows",
    "related",
    "similar",
    "spectrum",
    "strongest_terms",
]
