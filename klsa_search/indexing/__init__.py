"""Build, estimate, refit, rebuild, repair, upgrade and verify indexes."""

from klsa_search.indexing.build import BuildOptions, build
from klsa_search.indexing.checks import other_source
from klsa_search.indexing.estimate import Estimate, PhaseCost, estimate
from klsa_search.indexing.rewrite import Repair, build_like, rebuild, refit, repair, upgrade
from klsa_search.indexing.sizes import Shape
from klsa_search.indexing.verify import verify_deep

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
