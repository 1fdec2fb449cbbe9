"""The extension module, which pyproject.toml cannot declare."""

from setuptools import setup

from build_backend import BuildNative, extension

setup(ext_modules=[extension()], cmdclass={"build_ext": BuildNative})
