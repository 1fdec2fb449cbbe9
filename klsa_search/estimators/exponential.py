"""The exponential (diffusion) kernel [KSC §4]."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Eigenvalues
from klsa_search.estimators.aligned import AlignedKernel
from klsa_search.estimators.kernel import Kernel


class ExponentialKernel(AlignedKernel):
    """Exponential (diffusion) kernel: K̂ = K exp(γK/λ_1).

    Documents are similar through chains of documents, as in the von Neumann kernel, but long chains
    count much less.

    gamma         from 0 (the base kernel) to 300; or "alignment", for the γ with the largest
                  alignment with the labels given to `fit`. The kernel grows like exp(γ), so search
                  C over many powers of ten
    n_components  number of eigenvectors, from 1 to the rank of the base kernel; None for all
    centred       use the centred alignment, for classes of very different size
    base          kernel estimator to build on; None is the inner product of the rows

    Cost: `fit` as LatentSemanticKernel; the line search adds O(k) per step. Source: Kandola,
    Shawe-Taylor & Cristianini, NIPS 2002, section 4.

    >>> ExponentialKernel(2.0).fit(counts).gamma_
    2.0
    """

    spectral = "exponential"
    most = 300.0  # exp of it squared is still a float64
    most_is_open = False

    def __init__(
        self,
        gamma: float | Literal["alignment"] = 1.0,
        *,
        n_components: int | None = None,
        centred: bool = False,
        base: Kernel | None = None,
    ) -> None:
        super().__init__(gamma, n_components=n_components, centred=centred, base=base)

    @staticmethod
    def _grid() -> npt.NDArray[np.float64]:
        return np.concatenate(([0.0], np.geomspace(1e-2, ExponentialKernel.most, 120)))

    @staticmethod
    def _growth(relative: Eigenvalues, values: Eigenvalues) -> Eigenvalues:
        return relative
