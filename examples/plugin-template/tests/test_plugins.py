"""The invariants of plug-ins, and one worked example of each."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from klsa_plugin_template.spectral import power
from klsa_plugin_template.tokenizer import trigrams

from klsa_search import build
from klsa_search.plugins.testing import (
    check_kernel,
    check_ranker,
    check_spectral,
    check_tokenizer,
)


@pytest.mark.parametrize("name", ["dph", "bm25l", "bm25-plus", "lm-dirichlet"])
def test_ranker(tmp_path: Path, name: str) -> None:
    check_ranker(name, tmp_path)


def test_kernel(tmp_path: Path) -> None:
    check_kernel("tf-idf", tmp_path)


def test_spectral_function(tmp_path: Path) -> None:
    check_spectral("power", tmp_path, gamma=0.5)


def test_tokenizer(tmp_path: Path) -> None:
    check_tokenizer("trigrams", tmp_path)


def test_dph_of_one_document(tmp_path: Path) -> None:
    documents = [{"id": "a", "text": "wing flow"}, {"id": "b", "text": "oven bread bread crust"}]
    index = build(documents, name="two", home=tmp_path, language="none")
    # f = 1, dl = 2, dl_avg = 3, N = 2, c = 1: F = 1/2.
    expected = 0.25 / 2 * (math.log2(1 * 3 / 2 * 2) + 0.5 * math.log2(2 * math.pi * 0.5))
    assert index.scores("wing", ranker="dph").tolist() == pytest.approx([expected, 0])
    index.close()


def test_variants_of_three_documents(tmp_path: Path) -> None:
    """The example in the docstring of `variants`."""
    documents = [{"id": str(n), "text": text} for n, text in enumerate(["t a", "a b", "t t a b c"])]
    expected = {"bm25l": 0.6249, "bm25-plus": 1.4957, "lm-dirichlet": 0.0010}
    with build(documents, name="three", home=tmp_path, language="none") as index:
        scores = {name: float(index.scores("t", ranker=name)[0]) for name in expected}
    assert scores == pytest.approx(expected, abs=5e-5)


def test_powers() -> None:
    assert power(0.5).of(np.array([1.0, 0.25])).tolist() == [1.0, 0.5]


def test_trigrams() -> None:
    assert list(trigrams("a pump")) == [("a", 0, 1), ("pum", 2, 5), ("ump", 3, 6)]
