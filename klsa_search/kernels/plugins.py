"""The weighting that settings name: BM25, or that of a plug-in, whose results are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.build_settings import KernelSettings
from klsa_search.core.plugins import load_plugin
from klsa_search.errors import PluginFailed
from klsa_search.kernels.bm25 import bm25_weighting
from klsa_search.kernels.weighting import FeatureWeighting


def feature_weighting(settings: KernelSettings) -> FeatureWeighting:
    """Return the weighting of document features; PluginFailed, also when it is used."""
    if settings.kernel == "bm25":
        return bm25_weighting(k1=settings.kernel_k1, b=settings.b, idf_power=settings.idf_power)
    name = settings.kernel
    weighting = load_plugin("kernel", name)
    if not isinstance(weighting, FeatureWeighting):
        raise PluginFailed(
            f"kernel `{name}` is {weighting!r}; it must be a FeatureWeighting", field="kernel"
        )
    return FeatureWeighting(
        norm=_checked(name, "norm", weighting.norm, -np.inf),
        local=_checked(name, "local", weighting.local, 0.0),
        weight=_checked(name, "weight", weighting.weight, np.finfo(np.float64).tiny),
    )


def _checked(
    name: str, part: str, function: Callable[..., Any], least: float
) -> Callable[..., npt.NDArray[np.float64]]:
    """Return a function whose results are finite, not below a limit, and as long as its input."""

    def checked(values: npt.NDArray[np.number], other: Any) -> npt.NDArray[np.float64]:
        try:
            result = np.asarray(function(values, other), np.float64)
        except Exception as error:  # code of another package may raise anything
            raise PluginFailed(
                f"kernel `{name}`: {part} failed ({type(error).__name__}: {error}); correct it",
                field="kernel",
            ) from error
        if result.shape != values.shape or not ((result >= least) & np.isfinite(result)).all():
            limit = {"local": ", not below 0", "weight": ", above 0"}.get(part, "")
            raise PluginFailed(
                f"kernel `{name}`: {part} returned an array of shape {result.shape}, or numbers "
                f"outside its limits; it must return {values.shape[0]:,} finite numbers{limit}",
                field="kernel",
            )
        return result

    return checked
