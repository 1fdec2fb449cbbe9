"""Eigendecomposition of the document kernel, functions of the spectrum, and the expansion D."""
