"""Points whose kernels can be written out, and a table of all kernel estimators."""

import numpy as np
from scipy import sparse

from klsa_search.estimators import (
    ExponentialKernel,
    GaussianKernel,
    GramSchmidtKernel,
    GVSMKernel,
    LatentSemanticKernel,
    PolynomialKernel,
    SemanticSmoothingKernel,
    SquashedKernel,
    VonNeumannKernel,
)
from tests.support.worlds import counts_of, random_documents, topic_documents

KERNELS = {
    "linear": SemanticSmoothingKernel(),
    "lsk": LatentSemanticKernel(5),
    "lsk whole": LatentSemanticKernel(),
    "lsk of polynomial": LatentSemanticKernel(5, base=PolynomialKernel(2)),
    "gram-schmidt": GramSchmidtKernel(5),
    "gram-schmidt generalised": GramSchmidtKernel(5, bias=4.0),
    "gram-schmidt of gaussian": GramSchmidtKernel(5, base=GaussianKernel(9.0)),
    "gvsm": GVSMKernel(),
    "gvsm of lsk": GVSMKernel(base=LatentSemanticKernel(5)),
    "smoothing": SemanticSmoothingKernel(np.tri(30)),
    "smoothing sparse": SemanticSmoothingKernel(sparse.csr_array(np.eye(30) + np.eye(30, k=1))),
    "squashed": SquashedKernel(0.1),
    "von neumann": VonNeumannKernel(0.6),
    "von neumann aligned": VonNeumannKernel("alignment"),
    "von neumann of smoothing": VonNeumannKernel(base=SemanticSmoothingKernel(np.tri(30))),
    "exponential": ExponentialKernel(2.0),
    "exponential aligned": ExponentialKernel("alignment", centred=True),
    "exponential of gaussian": ExponentialKernel(base=GaussianKernel(9.0)),
    "polynomial": PolynomialKernel(3),
    "polynomial of lsk": PolynomialKernel(2, base=LatentSemanticKernel(5)),
    "gaussian": GaussianKernel(9.0),
    "gaussian of polynomial": GaussianKernel(200.0, base=PolynomialKernel(2)),
}


def counts():
    """(40, 30) and (12, 30) float64 counts of random documents: to learn from, and new ones."""
    made = counts_of(*random_documents(52, 30)).matrix.astype(np.float64)
    return made[:40], made[40:]


def two_topics():
    """Documents of four topics as counts; True for those of the first."""
    return counts_of(*topic_documents()).matrix.astype(np.float64), np.arange(48) < 12
