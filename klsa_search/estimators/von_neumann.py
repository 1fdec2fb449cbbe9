"""The von Neumann kernel: similarity through every chain of documents and terms [KSC §3]."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Eigenvalues
from klsa_search.estimators.aligned import AlignedKernel
from klsa_search.estimators.kernel import Kernel


class VonNeumannKernel(AlignedKernel):
    """Von Neumann kernel: K̂ = K (I - γK/λ_1)⁻¹.

    Documents are similar through every chain of documents and terms: K̂ = (γ/λ_1) XĜXᵀ + K, where Ĝ
    is the same kernel of the terms.

    gamma         from 0 (the base kernel) to below 1; or "alignment", for the γ with the largest
                  alignment with the labels given to `fit`
    n_components  number of eigenvectors, from 1 to the rank of the base kernel; None for all
    centred       use the centred alignment, for classes of very different size
    base          kernel estimator to build on; None is the inner product of the rows

    Cost: `fit` as LatentSemanticKernel; the line search adds O(k) per step. Source: Kandola,
    Shawe-Taylor & Cristianini, NIPS 2002, section 3.

    >>> kernel = VonNeumannKernel(0.9).fit(counts)
    >>> bool(kernel.kernel(counts)[0, 2] > (counts @ counts.T)[0, 2])
    True
    """

    spectral = "von-neumann"
    most = 1.0
    most_is_open = True

    def __init__(
        self,
        gamma: float | Literal["alignment"] = 0.5,
        *,
        n_components: int | None = None,
        centred: bool = False,
        base: Kernel | None = None,
    ) -> None:
        super().__init__(gamma, n_components=n_components, centred=centred, base=base)

    @staticmethod
    def _grid() -> npt.NDArray[np.float64]:
        return 1 - np.logspace(0, -6, 121)

    @staticmethod
    def _growth(relative: Eigenvalues, values: Eigenvalues) -> Eigenvalues:
        return relative * values
