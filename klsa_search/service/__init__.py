"""Serve: the endpoints, a pane of glass over the indexes of a home."""

from klsa_search.service.app import create_app
from klsa_search.service.catalog import Catalog

__all__ = ["Catalog", "create_app"]
