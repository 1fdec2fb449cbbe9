"""Decompose: document kernel → eigenvectors and eigenvalues; functions of them."""
