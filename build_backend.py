"""The build of the package: setuptools, and zig as the C++ compiler if there is no other.

`BuildNative` compiles klsa_search/native into the module `klsa_search._native`, and writes its
types and descriptions, for type checkers and editors, to `_native.pyi`. Objects of an in-place
build stay in build/, and only those whose sources or options changed are compiled again. With
KLSA_NATIVE=1 they are compiled for this machine only, in a quarter less time: `make run`.
With KLSA_SANITIZE=1 the module checks itself by AddressSanitizer and UBSan: `make sanitized`.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, build_meta
from setuptools.build_meta import *  # noqa: F403 - the other hooks of PEP 517
from setuptools.command.build_ext import build_ext

try:
    import nanobind
except ModuleNotFoundError:
    sys.exit("nanobind is not installed: omit --no-build-isolation, or pip install nanobind")

SOURCES = Path("klsa_search/native")
FLAGS = [
    *(
        "-std=c++20",
        "-O3",
        "-g0",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-fno-strict-aliasing",
    ),
    # No fused multiply-add: the same bits on all processors.
    *("-ffp-contract=off", "-fno-math-errno"),
    # GCC 12 warns of its own header of intrinsics.
    *("-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-maybe-uninitialized"),
]
# One module for all later versions of Python; nanobind needs 3.12 for that.
IS_STABLE = sys.version_info >= (3, 12) and not sysconfig.get_config_var("Py_GIL_DISABLED")
STABLE = ["-DPy_LIMITED_API=0x030C0000"] if IS_STABLE else []
# Bindings and nanobind have few loops: optimising them further takes longer and gains nothing.
LEVELS = {"engine": "-O1", "nanobind": "-O1"}
# The numbers of the instruction sets (KLSA_ISA), and the flags of the processors that have them.
AVX2 = {"avx2", "bmi1", "bmi2", "popcnt", "abm", "fma"}
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512vl", "avx512dq"}
INSTRUCTION_SETS = {"baseline": (2, set()), "avx2": (3, AVX2), "avx512": (4, AVX512)}
# Those that take longest to compile start first, and the shortest last: processors end together.
SLOWEST, SHORTEST = {"engine", "neighbours"}, {"arrays", "gil", "module"}
SANITIZE = [
    *("-O1", "-g1", "-fno-omit-frame-pointer"),
    "-fsanitize=address,undefined",
    "-D_GLIBCXX_ASSERTIONS",  # bounds of std::span and std::vector
]


def _sanitize() -> list[str]:
    return SANITIZE if os.environ.get("KLSA_SANITIZE") == "1" else []


def native_set() -> str | None:
    """Return the largest instruction set of this processor, if the module is for it alone.

    None, for all sets, if the system does not tell it.
    """
    if os.environ.get("KLSA_NATIVE") != "1":
        return None
    try:
        flags = set(Path("/proc/cpuinfo").read_text().split())
    except FileNotFoundError:  # as on macOS
        return None
    return [name for name, (_, needed) in INSTRUCTION_SETS.items() if needed <= flags][-1]


def compiler() -> list[str]:
    """Return the command of the C++ compiler: `CXX`, c++, or zig of the package ziglang."""
    command = shlex.split(os.environ.get("CXX", "c++"))
    return command if shutil.which(command[0]) else [sys.executable, "-m", "ziglang", "c++"]


def _requires_zig() -> list[str]:
    return ["ziglang"] if "ziglang" in compiler() else []


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what setuptools requires, and ziglang if there is no C++ compiler."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_requires_zig()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Return what setuptools requires, and ziglang if there is no C++ compiler."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_requires_zig()]


class BuildNative(build_ext):
    """Compile the sources in parallel, and of an in-place build only those that changed."""

    def run(self) -> None:
        """Build in a folder that stays, if the module is to be next to the package's files."""
        if self.editable_mode or self.inplace:
            self.build_temp = "-".join(
                filter(None, ["build/native", sys.implementation.cache_tag, native_set()])
            )
        super().run()
        if not _sanitize():  # a module that checks itself needs a Python that does so, too
            for ext in self.extensions:
                self._write_stub(Path(self.get_ext_fullpath(ext.name)))

    def build_extension(self, ext: Extension) -> None:
        """Compile and link."""
        folder = Path(self.build_temp)
        folder.mkdir(parents=True, exist_ok=True)
        system = (f"-isystem{path}" for path in _system_folders(folder))
        options = [*compiler(), *FLAGS, *STABLE, *_sanitize(), *system]
        if name := native_set():
            options.append(f"-DKLSA_NATIVE={INSTRUCTION_SETS[name][0]}")
        # Read before compiling: a file that changes meanwhile is compiled again.
        contents = {file: Path(file).read_bytes() for file in ext.depends}
        objects = {source: folder / f"{Path(source).stem}.o" for source in ext.sources}

        def make_object(source: str) -> None:
            made = objects[source]
            level = [LEVELS[made.stem]] if made.stem in LEVELS and not _sanitize() else []
            depends = ["-MMD", "-MF", str(made.with_suffix(".d"))]
            command = [*options, *level, *depends, "-c", source, "-o", str(made)]
            made_with = made.with_suffix(".key")
            is_complete = all(made.with_suffix(end).is_file() for end in (".o", ".d", ".key"))
            if is_complete and made_with.read_text() == _key(command, made, contents):
                return
            made_with.unlink(missing_ok=True)
            self.spawn(command)
            made_with.write_text(_key(command, made, contents))

        def turn(source: str) -> int:
            stem = objects[source].stem
            return (stem not in SLOWEST) + (stem in SHORTEST)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(make_object, sorted(objects, key=turn)))
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        # Not written over: processes may have it mapped.
        new = target.with_name(f"{target.name}.new")
        parts = map(str, objects.values())
        strip = _sanitize() or ["-s"]
        self.spawn([*compiler(), "-shared", *strip, *undefined, *parts, "-o", str(new)])
        new.replace(target)

    def _write_stub(self, module: Path) -> None:
        """Write the types and descriptions of a module next to it."""
        name = module.name.partition(".")[0]
        command = [sys.executable, "-P", "-m", "nanobind.stubgen", "--quiet", "--module", name]
        stub = str(module.with_name(f"{name}.pyi"))
        self.spawn([*command, "--import", str(module.parent), "--output-file", stub])


def _system_folders(folder: Path) -> list[Path | str]:
    """Return the folders of headers that are not the package's.

    nanobind's are behind a link, because an isolated build has them in another folder each time.
    """
    link = folder / "nanobind"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(nanobind.__file__).parent, target_is_directory=True)
    python = dict.fromkeys(sysconfig.get_path(each) for each in ("include", "platinclude"))
    return [link / "include", link / "src", link / "ext/robin_map/include", *python]


def _key(command: list[str], made: Path, contents: dict[str, bytes]) -> str:
    """Return a digest of the command that makes an object and of the files that it depends on."""
    depends = made.with_suffix(".d")
    digest = hashlib.sha256("\n".join([*command, nanobind.__version__, sys.version]).encode())
    for file in depends.read_text().partition(":")[2].replace("\\\n", " ").split():
        digest.update(contents.get(os.path.normpath(file), b""))
    return digest.hexdigest()


def extension() -> Extension:
    """Return the extension module."""
    files = sorted(map(str, SOURCES.rglob("*.[ch]pp")))
    left_out = INSTRUCTION_SETS.keys() - {native_set()} if native_set() else ()
    sources = [file for file in files if file.endswith(".cpp") and Path(file).stem not in left_out]
    return Extension("klsa_search._native", sources, depends=files, py_limited_api=IS_STABLE)
