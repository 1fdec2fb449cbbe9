"""The application over open indexes."""

from contextlib import asynccontextmanager
from functools import cache

from klsa_search.service.admission import HEAVY, HEAVY_WAITING, Admission
from klsa_search.service.application import create_app
from klsa_search.service.keys import FILE
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.resources import Resources
from klsa_search.service.settings import ServiceSettings


@cache
def _defaults():
    """Read the environment once: that takes as long as to make an application."""
    return ServiceSettings()


def app_of_indexes(
    open_indexes,
    *,
    keys=None,
    origins=(),
    allowed_hosts=("*",),
    log_queries=False,
    page=None,
    **resources,
):
    """Return an application, read-only without `writes`, whose lifespan does nothing.

    keys  by default those of the index directory; while it has none, all is allowed
    page  settings of the search page
    """
    resources = {
        "admission": Admission(),
        "heavy": Admission(running=HEAVY, waiting=HEAVY_WAITING),
        **resources,
    }
    keys = keys or Keys(open_indexes.home / FILE, {"search", "write", "metrics"})
    values = {
        "home": open_indexes.home,
        "cors_origins": origins,
        "allowed_hosts": allowed_hosts,
        "log_queries": log_queries,
    }
    settings = _defaults().model_copy(update=values | (page or {}))
    app = create_app(
        settings, resources=Resources(open_indexes=open_indexes, keys=keys, **resources)
    )

    @asynccontextmanager
    async def lifespan(_):
        yield

    app.router.lifespan_context = lifespan
    return app
