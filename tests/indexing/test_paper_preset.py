"""The preset `paper` equals the published method to the bit."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

LETTERS = Path(__file__).parents[1] / "support" / "letters.jsonl"

SUMS = {
    "vocabulary.txt": "3b76d159d9520c0d",
    "lengths.npy": "972e9cdca381c29f",
    "postings_starts.npy": "4580764ad7f24361",
    "postings_entries.npy": "ec1c290fdc1b320e",
    "postings_runs.npy": "07c6d51c1cba286c",
    "postings_best.npy": "9d63fbc2342d1c3d",
    "forward_codes.npy": "0135d6d50f477bb4",
}
"""Of the files that hold no rounded numbers, as the version before common words wrote them."""

SCORES = {
    ("wings", "bm25"): ["0x1.8093p+0", "0x1.125fp+0", "0x0p+0"],
    ("wings", "klsa"): ["0x1.80930401p+0", "0x1.b6fe66p-4", "0x0p+0"],
    ("Die Größe der Flügel bestimmt den Auftrieb.", "bm25"): ["0x0p+0", "0x0p+0", "0x1.54416p+3"],
    ("order and number of problems", "bm25"): ["0x0p+0", "0x0p+0", "0x0p+0"],
}
"""Of the first three documents, likewise."""


@pytest.fixture(scope="module")
def paper(index_of):
    records = [json.loads(line) for line in LETTERS.open(encoding="utf-8")]
    return index_of(records, preset="paper")


@pytest.mark.parametrize("name", SUMS)
def test_files_are_what_they_were(paper, name):
    content = (paper.path / name).read_bytes()
    assert hashlib.sha256(content).hexdigest()[:16] == SUMS[name]


@pytest.mark.parametrize(("query", "ranker"), SCORES)
def test_scores_are_what_they_were(paper, query, ranker):
    expected = [float.fromhex(score) for score in SCORES[query, ranker]]
    found = paper.scores(query, ranker=ranker)[:3].tolist()
    assert found == (expected if ranker == "bm25" else pytest.approx(expected, rel=1e-6))


def test_terms_weigh_what_is_published(paper):
    kernel = paper.arrays.query_kernel
    assert (kernel.burstiness(np.arange(len(kernel.counts.frequencies))) == 1).all()
    assert len(paper.arrays.common) == 0
    assert paper.arrays.forward.fields.weights == (1, 1)
    assert "hello" not in paper.analyzer.terms("hello of the problem")
    assert (paper.settings.hold_back, paper.settings.alpha) == (0, 0.9)
