"""Build, plan, refit, compact, embed, repair and verify indexes."""

from klsa_search.indexing.build import BuildOptions, Plan, build, plan, plan_of_size
from klsa_search.indexing.checks import other_source
from klsa_search.indexing.compaction import compact
from klsa_search.indexing.estimate import Size
from klsa_search.indexing.rewrite import (
    EmbedResult,
    Repair,
    build_like,
    embed,
    refit,
    repair,
)
from klsa_search.indexing.verify import verify_deep

__all__ = [
    "BuildOptions",
    "EmbedResult",
    "Plan",
    "Repair",
    "Size",
    "build",
    "build_like",
    "compact",
    "embed",
    "other_source",
    "plan",
    "plan_of_size",
    "refit",
    "repair",
    "verify_deep",
]
