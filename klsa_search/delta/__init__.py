"""Fold in: documents that come after a build, by the statistics it was built with."""

from typing import TYPE_CHECKING

from klsa_search.faces import handing_on

if TYPE_CHECKING:
    from klsa_search.delta.epoch import Epoch, epoch_arrays, open_epoch
    from klsa_search.delta.fold import Folding
    from klsa_search.delta.kept import KeptSegments
    from klsa_search.delta.pairs import Pairs
    from klsa_search.delta.saturating import SaturatedPostings
    from klsa_search.delta.segment import DeltaSegment, merge, read_segment, write_segment
else:
    __getattr__, __dir__ = handing_on(
        __name__,
        {
            "epoch": "Epoch epoch_arrays open_epoch",
            "fold": "Folding",
            "kept": "KeptSegments",
            "pairs": "Pairs",
            "saturating": "SaturatedPostings",
            "segment": "DeltaSegment merge read_segment write_segment",
        },
    )

__all__ = [
    "DeltaSegment",
    "Epoch",
    "Folding",
    "KeptSegments",
    "Pairs",
    "SaturatedPostings",
    "epoch_arrays",
    "merge",
    "open_epoch",
    "read_segment",
    "write_segment",
]
