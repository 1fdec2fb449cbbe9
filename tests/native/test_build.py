"""Which objects of the extension module a build compiles again."""

import os
import sys
from pathlib import Path

import pytest
from setuptools import Distribution

import build_backend
from klsa_search import _native

# Writes what it is asked for, and the sources it compiles to compiled.txt.
COMPILER = r"""
import sys
options = sys.argv[1:]
with open(options[options.index("-o") + 1], "w"):
    pass
if "-c" in options:
    source = options[options.index("-c") + 1]
    header = "klsa_search/native/engine/../arrays.hpp"
    with open(options[options.index("-MF") + 1], "w") as depends:
        depends.write(f"made.o: {source}" + (f" \\\n {header}" if "words" in source else ""))
    with open("compiled.txt", "a") as compiled:
        compiled.write(source.rpartition("/")[2] + "\n")
"""


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Build a package of a header and two sources; return the names of those it compiled."""
    monkeypatch.chdir(tmp_path)
    native = Path("klsa_search/native")
    native.mkdir(parents=True)
    for name in ("arrays.hpp", "engine.cpp", "words.cpp"):
        (native / name).write_text(f"// {name}")
    Path("compiler.py").write_text(COMPILER)
    monkeypatch.setenv("CXX", f"{sys.executable} -I -S compiler.py")

    def build():
        log = Path("compiled.txt")
        log.write_text("")
        command = build_backend.BuildNative(
            Distribution({"ext_modules": [build_backend.extension()]})
        )
        command.build_temp, command.build_lib = "build/native", "build/lib"
        command.ensure_finalized()
        command.build_extension(command.extensions[0])
        return sorted(log.read_text().split())

    assert build() == ["engine.cpp", "words.cpp"]
    return build


def test_a_newer_file_with_the_same_content_is_not_compiled(compiled):
    for path in Path("klsa_search/native").iterdir():
        os.utime(path, (2e9, 2e9))
    assert compiled() == []


def test_a_header_that_changed_is_compiled_where_it_is_included(compiled):
    path = Path("klsa_search/native/arrays.hpp")
    path.write_text("// more")
    os.utime(path, (1e9, 1e9))
    assert compiled() == ["words.cpp"]
    assert compiled() == []


def test_another_level_of_optimisation_compiles_its_file(compiled, monkeypatch):
    monkeypatch.setitem(build_backend.LEVELS, "words", "-O1")
    assert compiled() == ["words.cpp"]


@pytest.mark.parametrize("kind", ["o", "d", "key"])
def test_a_lost_file_of_an_object_compiles_it(compiled, kind):
    Path(f"build/native/words.{kind}").unlink()
    assert compiled() == ["words.cpp"]


def test_a_compilation_that_fails_is_tried_again(compiled):
    working = Path("compiler.py").read_text()
    Path("klsa_search/native/words.cpp").write_text("// more")
    Path("compiler.py").write_text(working + "sys.exit(1)")
    with pytest.raises(Exception, match="failed"):
        compiled()
    Path("compiler.py").write_text(working)
    assert compiled() == ["words.cpp"]


def test_a_compiler_that_writes_no_dependencies_is_an_error(compiled):
    Path("compiler.py").write_text(COMPILER.replace('options[options.index("-MF") + 1]', '"no.d"'))
    Path("build/native/words.d").unlink()
    with pytest.raises(FileNotFoundError):
        compiled()


def test_a_module_for_this_machine_has_its_largest_instruction_set_alone(compiled, monkeypatch):
    folder = Path("klsa_search/native/engine")
    folder.mkdir()
    for name in ("baseline", "avx2", "avx512"):
        (folder / f"{name}.cpp").write_text(f"// {name}")
    assert compiled() == ["avx2.cpp", "avx512.cpp", "baseline.cpp"]
    monkeypatch.setenv("KLSA_NATIVE", "1")
    largest = _native.instruction_sets()[-1]
    assert build_backend.native_set() == largest
    assert compiled() == [f"{largest}.cpp", "engine.cpp", "words.cpp"]
