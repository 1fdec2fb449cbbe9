"""Questions to the docstrings of Python: what the examples of the README were picked from."""
