"""What all routes share: the catalog they serve, and ids and terms in a path."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from starlette.convertors import PathConvertor, register_url_convertor

from klsa_search.service.catalog import Catalog


class _Whole(PathConvertor):
    """Whatever a path holds, slashes and line ends too: the id of a document is opaque."""

    regex = r"[\s\S]*"


register_url_convertor("whole", _Whole())


async def _served(request: Request) -> Catalog:
    catalog: Catalog = request.app.state.catalog
    return catalog


Served = Annotated[Catalog, Depends(_served)]
