"""The extension module, which pyproject.toml cannot declare."""

from setuptools import setup

from build_backend import IS_STABLE, BuildNative, extension

setup(
    ext_modules=[extension()],
    cmdclass={"build_ext": BuildNative},
    options={"bdist_wheel": {"py_limited_api": "cp312"}} if IS_STABLE else {},
)
