"""Plug-ins for klsa-search: see `pyproject.toml` for their names."""
