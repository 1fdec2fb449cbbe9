"""The seeds of the default ranking: their weights, the sum of their rows, and the part lengths."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal
from klsa_search.lowrank.coverage import effective_alpha
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.search.engine.blocks import allowed
from klsa_search.search.engine.candidates import (
    add_features,
    expansion_score,
    latent_score,
    score_coverage,
)
from klsa_search.search.engine.workspace import IndexArrays, QueryContext, Workspace

_effective_alpha = internal(effective_alpha)

SUMS = 32_000.0  # largest sum of features: fits 16 bits after rounding
MAX_SEEDS = 1_500  # each may be rounded up by half a step
NEGLIGIBLE = 0.002  # share of the first seed's weight below which a seed is ignored


class KlsaParams(NamedTuple):
    """Parameters of the default ranking, as compiled code takes them."""

    seeds: int  # z, at most N
    best: int  # at least `seeds`, at most N
    alpha: float  # largest share of expansion, coverage and latent together
    hold_back: float  # part of alpha subtracted if the first document contains the whole query
    expansion: float  # shares within alpha
    coverage: float
    latent: float
    sharpness: float
    lexical_sharpness: float
    coverage_power: float
    unit_length: bool
    slope: float  # of D over K
    mean_square: float


class RerankDepths(NamedTuple):
    """How many candidates are rescored."""

    coverage_depth: int  # candidates whose T is computed exactly
    expansion_depth: int  # candidates whose E is computed exactly
    filtered: int  # best documents within a mask that are candidates
    look_up_all: bool  # the mask has at most `filtered` documents: look up each


PARAMETERS: Final = np.dtype(
    [
        (name, {int: "i8", float: "f8", bool: "?"}[kind])
        for name, kind in (get_type_hints(KlsaParams) | get_type_hints(RerankDepths)).items()
    ]
)
"""Both as one record: passing the fields one by one takes a tenth of the time of a short query."""


def parameters_record(params: KlsaParams, depths: RerankDepths) -> npt.NDArray[np.void]:
    """Return both as a record: (1,)."""
    return np.array([(*params, *depths)], PARAMETERS)


@internal
def weigh_seeds(
    index: IndexArrays,
    workspace: Workspace,
    params: KlsaParams,
    stride: int,
    seeds: int,
    top: np.float32,
) -> None:
    """Weigh the seeds: sharpened k_q times a power of their coverage; store their coverage."""
    weights, lexical = workspace.weights, workspace.lexical
    covered, chosen = workspace.covered, workspace.chosen
    for i in range(seeds):
        weights[i] = top * power(lexical[i + 1], params.sharpness)
        chosen[i] = i + 1
    if params.coverage == 0:
        return
    score_coverage(
        index, workspace, stride, seeds, chosen, seeds, len(workspace.near) - 1, covered[1:]
    )
    largest = np.float32(0)
    for i in range(seeds):
        largest = max(largest, covered[i + 1])
    for i in range(seeds):
        weights[i] *= power(covered[i + 1] / largest, params.coverage_power)


@internal
def add_rows(
    index: IndexArrays, workspace: Workspace, params: KlsaParams, seeds: int, size: int
) -> int:
    """Add up the rows of the seeds; return the last slot. Negligible weights are set to 0.

    The sums at the seeds themselves are not used: their E is computed exactly.
    """
    weights, rows, scales = workspace.weights, index.rows, index.scales
    reverse_row, reverse_rows = index.reverse_row, index.reverse_rows
    least = np.float32(NEGLIGIBLE) * weights[0]
    for i in range(seeds):
        if weights[i] < least:
            weights[i] = 0
            continue
        seed = int(np.int64(workspace.documents[i + 1]))
        step = np.float32(params.slope) * weights[i] * scales[seed, 0]
        size = _add_row(rows, seed, step, workspace, size)
        if len(reverse_row) > 0 and reverse_row[seed] > 0:
            row = int(np.int64(reverse_row[seed] - 1))
            step = np.float32(params.slope) * weights[i] * index.reverse_steps[row]
            size = _add_row(reverse_rows, row, step, workspace, size)
    return size


@internal
def _add_row(
    rows: npt.NDArray[np.uint32], row: int, step: np.float32, workspace: Workspace, size: int
) -> int:
    slots, documents, expanded = workspace.slots, workspace.documents, workspace.expanded
    for column in range(rows.shape[1]):
        entry = rows[row, column]
        if entry == 0:
            break
        document = entry >> np.uint32(8)
        slot = slots[document]
        if slot == 0:
            size += 1
            slot = size
            slots[document] = slot
            documents[slot] = document
            expanded[slot] = 0
        expanded[np.uint32(slot)] += step * np.float32(entry & np.uint32(LEVELS))
    return size


@internal
def exclude_masked(words: npt.NDArray[np.uint64], workspace: Workspace, size: int) -> None:
    """Set the scores of candidates outside a mask to minus infinity."""
    documents, scores = workspace.documents, workspace.scores
    for slot in range(1, size + 1):
        if not allowed(words, int(documents[slot])):
            scores[slot] = -np.inf


@internal
def add_seed_features(
    index: IndexArrays, workspace: Workspace, params: KlsaParams, seeds: int
) -> tuple[np.float32, np.float32, np.float32, float]:
    """Add up the features of the seeds, in steps that keep the sums within 16 bits.

    Returns the terms of centring, Σ weight · S, Σ weight · SΦμ and ‖μ‖², and the value of one step.
    """
    weights = workspace.weights
    scale, mean, largest = np.float32(0), np.float32(0), 0.0
    last = index.document_scalars.shape[1] - 1
    for i in range(seeds):
        seed = int(workspace.documents[i + 1])
        weight = np.float32(params.slope) * weights[i]
        scale += weight * index.document_scalars[seed, last - 1]
        mean += weight * index.document_scalars[seed, last]
        largest += weight * index.document_scalars[seed, last - 2] * LEVELS
    steps_per_unit = np.float32(SUMS / largest) if largest > 0 else np.float32(0)
    for i in range(seeds):
        if weights[i] > 0:
            weight = np.float32(params.slope) * weights[i] * steps_per_unit
            add_features(int(workspace.documents[i + 1]), weight, index, workspace)
    step = float(1.0 / steps_per_unit) if steps_per_unit > 0 else 0.0
    return scale, mean, np.float32(params.mean_square), step


@internal
def part_factors(
    index: IndexArrays,
    workspace: Workspace,
    params: KlsaParams,
    seeds: int,
    alpha: float,
    top: np.float32,
    angle: np.float32,
    centre: Any,
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Return the shares of E, T, L (in steps) and X divided by their lengths over the seeds.

    The exact E of the seeds is stored.
    """
    expansion, coverage = alpha * params.expansion, alpha * params.coverage
    latent, lexical = alpha * params.latent, 1 - alpha
    for slot in range(1, seeds + 1):
        exact = expansion_score(int(workspace.documents[slot]), index, workspace, centre)
        workspace.expanded[slot] = clip(exact, params)
    if not params.unit_length:
        return (
            np.float32(expansion),
            np.float32(coverage),
            np.float32(latent) * angle,
            np.float32(lexical) * top,
        )
    e, t, a, x = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for slot in range(1, seeds + 1):
        document = int(workspace.documents[slot])
        e += workspace.expanded[slot] ** 2
        t += workspace.covered[slot] ** 2
        steps = latent_score(index.document_vectors, document, workspace.query_vector)
        a += np.float32(max(int(steps), 0)) ** 2
        x += power(workspace.lexical[slot], params.lexical_sharpness) ** 2
    return (
        _over(expansion, e),
        _over(coverage, t),
        _over(latent, a) if a > 0 else np.float32(latent) * angle,
        _over(lexical, x),
    )


@internal
def query_alpha(
    context: QueryContext, workspace: Workspace, params: KlsaParams, terms: int, stride: int
) -> float:
    """Return α(q), from the share of the query that the first document contains."""
    share = matched_share(context, workspace, terms, stride)
    return _effective_alpha(params.alpha, params.hold_back, share)


@internal
def matched_share(context: QueryContext, workspace: Workspace, terms: int, stride: int) -> float:
    """Return the share of the query that the first document contains, by term weights."""
    contained, total = 0, 0
    for j in range(terms):
        total += context.weight[j]
        if workspace.impacts[stride + j] > 0:
            contained += context.weight[j]
    return contained / total


@inlined
def clip(value: np.float32, params: KlsaParams) -> np.float32:
    """Clip a part at 0, if parts are scaled to unit length."""
    return max(value, np.float32(0)) if params.unit_length else value


@inlined
def _over(share: float, square: np.float32) -> np.float32:
    """Return share / √square, or the share of a part that is 0 at every seed."""
    return np.float32(share / np.sqrt(square)) if square > 0 else np.float32(share)


@inlined
def power(base: np.float32, exponent: float) -> np.float32:
    """Return base ** exponent; whole exponents, the usual case, by squaring."""
    whole = int(exponent)
    if whole != exponent:
        return np.float32(base**exponent)
    result, square = np.float32(1), base
    while whole > 0:
        if whole & 1:
            result *= square
        square *= square
        whole >>= 1
    return result
