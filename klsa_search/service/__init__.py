"""Serve: the endpoints, a pane of glass over the indexes of a home."""

from typing import TYPE_CHECKING

from klsa_search.faces import handing_on

if TYPE_CHECKING:
    from klsa_search.service.app import create_app
    from klsa_search.service.catalog import Catalog
else:
    __getattr__, __dir__ = handing_on(__name__, {"app": "create_app", "catalog": "Catalog"})

__all__ = ["Catalog", "create_app"]
