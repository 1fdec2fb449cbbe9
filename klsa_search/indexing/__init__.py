"""Build, estimate, refit, rebuild, repair, upgrade and verify indexes."""

from klsa_search.indexing.build import BuildOptions, build
from klsa_search.indexing.deep import verify_deep
from klsa_search.indexing.estimate import Estimate, PhaseCost, estimate
from klsa_search.indexing.rebuild import build_like, rebuild, refit
from klsa_search.indexing.repair import Repair, repair
from klsa_search.indexing.replacing import other_source
from klsa_search.indexing.shape import Shape
from klsa_search.indexing.upgrade import upgrade

__all__ = [
    "BuildOptions",
    "Estimate",
    "PhaseCost",
    "Repair",
    "Shape",
    "build",
    "build_like",
    "estimate",
    "other_source",
    "rebuild",
    "refit",
    "repair",
    "upgrade",
    "verify_deep",
]
