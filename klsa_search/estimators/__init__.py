"""Features and kernels as scikit-learn estimators (extra `estimators`)."""

from klsa_search.core.installation import require
from klsa_search.estimators.alignment import AlignmentCurve, alignment

try:
    from klsa_search.estimators.base import Kernel
    from klsa_search.estimators.features import BM25Features, TfidfFeatures
    from klsa_search.estimators.gram_schmidt import GramSchmidtKernel
    from klsa_search.estimators.pointwise import GaussianKernel, PolynomialKernel
    from klsa_search.estimators.semantic_smoothing import SemanticSmoothingKernel, TermNetwork
    from klsa_search.estimators.spectral import (
        ExponentialKernel,
        GVSMKernel,
        LatentSemanticKernel,
        SquashedKernel,
        VonNeumannKernel,
    )
except ModuleNotFoundError:
    require("estimators")
    raise

__all__ = [
    "AlignmentCurve",
    "BM25Features",
    "ExponentialKernel",
    "GVSMKernel",
    "GaussianKernel",
    "GramSchmidtKernel",
    "Kernel",
    "LatentSemanticKernel",
    "PolynomialKernel",
    "SemanticSmoothingKernel",
    "SquashedKernel",
    "TermNetwork",
    "TfidfFeatures",
    "VonNeumannKernel",
    "alignment",
]
