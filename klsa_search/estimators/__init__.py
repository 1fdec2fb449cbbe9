"""Features and kernels as scikit-learn estimators (extra `estimators`)."""

from klsa_search.extras import require
from klsa_search.kernel.alignment import AlignmentCurve, alignment

try:
    from klsa_search.estimators.bm25_features import BM25Features
    from klsa_search.estimators.exponential import ExponentialKernel
    from klsa_search.estimators.gaussian import GaussianKernel
    from klsa_search.estimators.gram_schmidt import GramSchmidtKernel
    from klsa_search.estimators.gvsm import GVSMKernel
    from klsa_search.estimators.kernel import Kernel
    from klsa_search.estimators.latent_semantic import LatentSemanticKernel
    from klsa_search.estimators.polynomial import PolynomialKernel
    from klsa_search.estimators.semantic_smoothing import SemanticSmoothingKernel
    from klsa_search.estimators.squashed import SquashedKernel
    from klsa_search.estimators.term_network import TermNetwork
    from klsa_search.estimators.tfidf_features import TfidfFeatures
    from klsa_search.estimators.von_neumann import VonNeumannKernel
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
