"""Plug-ins of the template and built-in parts keep the invariants of plug-ins."""

import shutil
import subprocess
import sys

import pytest

from klsa_search.core.build_settings import KERNEL_NAMES
from klsa_search.core.parameters import RANKER_NAMES, SPECTRAL_NAMES
from klsa_search.plugins.testing import check_kernel, check_ranker, check_spectral, check_tokenizer
from tests.support.plugins import TEMPLATE


@pytest.mark.slow
@pytest.mark.parametrize("name", RANKER_NAMES.built_in)
def test_built_in_rankers(tmp_path, name):
    check_ranker(name, tmp_path)


@pytest.mark.parametrize("name", ["dph", "bm25l", "bm25-plus", "lm-dirichlet"])
def test_rankers(template, tmp_path, name):
    check_ranker(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNEL_NAMES.built_in)
def test_built_in_kernels(tmp_path, name):
    check_kernel(name, tmp_path)


@pytest.mark.parametrize("name", ["tf-idf"])
def test_kernels(template, tmp_path, name):
    check_kernel(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECTRAL_NAMES.built_in)
def test_built_in_functions_of_the_spectrum(tmp_path, name):
    check_spectral(name, tmp_path)


@pytest.mark.parametrize("name", ["power"])
def test_functions_of_the_spectrum(template, tmp_path, name):
    check_spectral(name, tmp_path)


def test_tokenizers(template, tmp_path):
    check_tokenizer("trigrams", tmp_path)


@pytest.mark.slow
def test_the_template_installs_and_its_own_tests_pass(tmp_path, monkeypatch):
    """By pip, without the network, into a folder of its own."""
    target, copy = tmp_path / "target", tmp_path / "template"
    shutil.copytree(TEMPLATE, copy)  # pip writes to it
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *options, str(copy)],
        check=True, timeout=300,
    )  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", str(target))
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(copy / "tests")],
        cwd=tmp_path, check=True, timeout=600,
    )  # fmt: skip
