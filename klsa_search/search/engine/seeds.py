"""The seeds of the default ranking: their weights, what their rows add up to, and the lengths."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal
from klsa_search.lowrank.coverage import effective_alpha
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.search.engine.blocks import allowed
from klsa_search.search.engine.candidates import add_features, compared, cosine, cover
from klsa_search.search.engine.workspace import IndexArrays, Record, Workspace

_effective_alpha = internal(effective_alpha)

SUMS = 32_000.0  # what the sums of features stay within, and in 16 bits when rounded
MAX_SEEDS = 1_500  # each may round up by half a step
NEGLIGIBLE = 0.002  # share of the first seed's weight below which a seed adds nothing


class KlsaParams(NamedTuple):
    """The parameters of a search, as the compiled code takes them."""

    seeds: int  # z, N at most
    best: int  # as many as seeds at least, N at most
    alpha: float  # share of the first three parts together, at most
    hold_back: float  # and of that, what a first document that holds the whole query takes off
    expansion: float  # shares of these parts
    coverage: float
    latent: float
    sharpness: float
    lexical_sharpness: float
    coverage_power: float
    unit_length: bool
    slope: float  # of D over K
    mean_square: float


class RerankDepths(NamedTuple):
    """How closely candidates are looked at."""

    covered: int  # candidates whose T is computed in full
    compared: int  # candidates whose E is computed in full
    within: int  # documents of the query kernel within a mask that are candidates
    looked_up: bool  # whether no more than `within` documents are in the mask: each is looked up


PLAN: Final = np.dtype(
    [
        (name, {int: "i8", float: "f8", bool: "?"}[kind])
        for name, kind in (get_type_hints(KlsaParams) | get_type_hints(RerankDepths)).items()
    ]
)
"""Both as one record: to hand them over one by one takes as long as a tenth of a short query."""


def plan_of(mix: KlsaParams, depths: RerankDepths) -> npt.NDArray[np.void]:
    """Write both into a record: (1,)."""
    return np.array([(*mix, *depths)], PLAN)


@internal
def weigh_seeds(
    held: IndexArrays, room: Workspace, mix: KlsaParams, lanes: int, seeds: int, top: np.float32
) -> None:
    """Weigh the seeds: k_q, sharpened, times the power of their coverage, which is kept."""
    weights, lexical, covered, chosen = room.weights, room.lexical, room.covered, room.chosen
    for i in range(seeds):
        weights[i] = top * power(lexical[i + 1], mix.sharpness)
        chosen[i] = i + 1
    if mix.coverage == 0:
        return
    cover(held.rows, room, lanes, seeds, chosen, seeds, len(room.near) - 1, covered[1:])
    largest = np.float32(0)
    for i in range(seeds):
        largest = max(largest, covered[i + 1])
    for i in range(seeds):
        weights[i] *= power(covered[i + 1] / largest, mix.coverage_power)


@internal
def add_rows(held: IndexArrays, room: Workspace, mix: KlsaParams, seeds: int, size: int) -> int:
    """Add up the rows of the seeds; returns the last slot. A negligible weight becomes 0.

    What this gives the seeds themselves is not used: theirs is computed in full.
    """
    weights, rows, scales = room.weights, held.rows, held.scales
    reversed_of, reversed_, steps = held.reversed_of, held.reversed, held.reversed_steps
    least = np.float32(NEGLIGIBLE) * weights[0]
    for i in range(seeds):
        if weights[i] < least:
            weights[i] = 0
            continue
        seed = int(np.int64(room.documents[i + 1]))
        step = np.float32(mix.slope) * weights[i] * scales[seed, 0]
        size = _add_row(rows, seed, step, room, size)
        if len(reversed_of) > 0 and reversed_of[seed] > 0:
            later = int(np.int64(reversed_of[seed] - 1))
            step = np.float32(mix.slope) * weights[i] * steps[later]
            size = _add_row(reversed_, later, step, room, size)
    return size


@internal
def _add_row(
    rows: npt.NDArray[np.uint32], number: int, step: np.float32, room: Workspace, size: int
) -> int:
    slots, documents, expanded = room.slots, room.documents, room.expanded
    for place in range(rows.shape[1]):
        entry = rows[number, place]
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
def leave_out(words: npt.NDArray[np.uint64], room: Workspace, size: int) -> None:
    """Give the candidates outside a mask a score that nothing raises."""
    documents, scores = room.documents, room.scores
    for slot in range(1, size + 1):
        if not allowed(words, int(documents[slot])):
            scores[slot] = -np.inf


@internal
def add_seed_features(
    held: IndexArrays, room: Workspace, mix: KlsaParams, seeds: int
) -> tuple[np.float32, np.float32, np.float32, float]:
    """Add up the features of the seeds, in steps that keep the sums within 16 bits.

    Returns what centring takes off: Σ weight · S, Σ weight · SΦμ and ‖μ‖²; and one step.
    """
    weights = room.weights
    scale, mean, largest = np.float32(0), np.float32(0), 0.0
    last = held.facts.shape[1] - 1
    for i in range(seeds):
        seed = int(room.documents[i + 1])
        weight = np.float32(mix.slope) * weights[i]
        scale += weight * held.facts[seed, last - 1]
        mean += weight * held.facts[seed, last]
        largest += weight * held.facts[seed, last - 2] * LEVELS
    steps = np.float32(SUMS / largest) if largest > 0 else np.float32(0)
    for i in range(seeds):
        if weights[i] > 0:
            weight = np.float32(mix.slope) * weights[i] * steps
            add_features(int(room.documents[i + 1]), weight, held, room)
    step = float(1.0 / steps) if steps > 0 else 0.0
    return scale, mean, np.float32(mix.mean_square), step


@internal
def factors_of(
    held: IndexArrays,
    room: Workspace,
    mix: KlsaParams,
    seeds: int,
    alpha: float,
    top: np.float32,
    angle: np.float32,
    centre: Any,
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Shares of E, T, L (in steps) and X over their lengths on the seeds, whose E is kept."""
    expansion, coverage = alpha * mix.expansion, alpha * mix.coverage
    latent, lexical = alpha * mix.latent, 1 - alpha
    for slot in range(1, seeds + 1):
        exact = compared(int(room.documents[slot]), held, room, centre)
        room.expanded[slot] = cut(exact, mix)
    if not mix.unit_length:
        return (
            np.float32(expansion),
            np.float32(coverage),
            np.float32(latent) * angle,
            np.float32(lexical) * top,
        )
    e, t, a, x = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for slot in range(1, seeds + 1):
        document = int(room.documents[slot])
        e += room.expanded[slot] ** 2
        t += room.covered[slot] ** 2
        a += np.float32(max(int(cosine(held.cards, document, room.place)), 0)) ** 2
        x += power(room.lexical[slot], mix.lexical_sharpness) ** 2
    return (
        _over(expansion, e),
        _over(coverage, t),
        _over(latent, a) if a > 0 else np.float32(latent) * angle,
        _over(lexical, x),
    )


@internal
def alpha_of(record: Record, room: Workspace, mix: KlsaParams, terms: int, lanes: int) -> float:
    """α of the query at hand, by the share of it that the first document holds."""
    held, whole = 0, 0
    for j in range(terms):
        whole += record.weight[j]
        if room.impacts[lanes + j] > 0:
            held += record.weight[j]
    return _effective_alpha(mix.alpha, mix.hold_back, held / whole)


@inlined
def cut(value: np.float32, mix: KlsaParams) -> np.float32:
    """Cut a part at 0, where parts are."""
    return max(value, np.float32(0)) if mix.unit_length else value


@inlined
def _over(share: float, square: np.float32) -> np.float32:
    """Share over length; a part that is 0 on every seed counts as it is."""
    return np.float32(share / np.sqrt(square)) if square > 0 else np.float32(share)


@inlined
def power(base: np.float32, exponent: float) -> np.float32:
    """Base ** exponent; whole exponents, the usual ones, by squaring."""
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
