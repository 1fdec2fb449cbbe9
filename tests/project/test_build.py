"""The extension module on a machine without a compiler: zig of the package registry builds it."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.project.test_packaging import ROOT, kept

pytestmark = [pytest.mark.slow, pytest.mark.external, pytest.mark.timeout(3600)]
UNREACHABLE = ("No matching distribution", "Could not find a version", "Connection")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=3000, **options)


@pytest.fixture
def without_compiler(tmp_path):
    """An environment in which no command is found, so neither is a compiler."""
    (tmp_path / "bin").mkdir()
    hidden = {"CC", "CXX", "PYTHONPATH"}
    kept_variables = {name: value for name, value in os.environ.items() if name not in hidden}
    cache = {"ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "zig")}
    return kept_variables | cache | {"PATH": str(tmp_path / "bin")}


def test_zig_builds_a_module_with_the_same_answers(tmp_path, without_compiler):
    source = tmp_path / "source"
    for name in kept():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    pip = (sys.executable, "-m", "pip")
    if run(*pip, "--version").returncode:
        pytest.skip("needs pip and the package registry")
    wheel = ("wheel", "--no-deps", "--wheel-dir", tmp_path / "dist", source)
    built = run(*pip, *wheel, env=without_compiler)
    if built.returncode and any(text in built.stderr for text in UNREACHABLE):
        pytest.skip("needs pip and the package registry")
    assert built.returncode == 0, built.stdout + built.stderr
    [wheel] = (tmp_path / "dist").glob("*.whl")
    installed = tmp_path / "installed"
    run(*pip, "install", "--no-deps", "--target", installed, wheel, check=True)
    path = {"PYTHONPATH": os.pathsep.join(map(str, [installed, ROOT]))}
    code = "import klsa_search; print(klsa_search.__file__)"
    found = run(sys.executable, "-P", "-c", code, env=os.environ | path, cwd=tmp_path)
    assert found.stdout.startswith(str(installed)), found.stderr
    command = (sys.executable, "-P", "-m", "tools.golden", "check", "plain", "written")
    checked = run(*command, env=os.environ | path, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
