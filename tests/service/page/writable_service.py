"""A service with its own index directory, for pages that write."""

import socket
from contextlib import contextmanager

import uvicorn

from klsa_search.core.child_processes import command_of
from klsa_search.service.admission import Admission, Writes
from klsa_search.service.application import CHILD
from klsa_search.service.jobs import Jobs
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.server import configured
from klsa_search.service.settings import ServiceSettings
from tests.service.sockets import Served
from tests.support.application import app_of_indexes
from tests.support.waiting import wait_until

SIZES = {"wide": {"viewport": {"width": 1280, "height": 900}},
         "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
         "phone": {"viewport": {"width": 390, "height": 844}}}  # fmt: skip
"""Of screens."""


@contextmanager
def writable(home, keys=None, recorder=None):
    """Serve a home, and give the address; `keys` is a file of keys."""
    command = command_of(CHILD, "refit", "--home", str(home))
    light, heavy, writes = Admission(waiting=1000), Admission(), Writes()
    with (
        OpenIndexes(home) as open_indexes,
        Jobs(open_indexes, command, share=None) as refits,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        app = app_of_indexes(
            open_indexes,
            admission=light,
            heavy=heavy,
            writes=writes,
            jobs=refits,
            keys=Keys(keys, set()) if keys else None,
            recorder=recorder,
        )
        server = uvicorn.Server(configured(app, ServiceSettings()))
        served = Served(server, light, heavy, listener)
        served.thread.start()
        try:
            wait_until(lambda: server.started)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            served.stop()
            served.wait_for_end()


def give_key(page, token, name=""):
    """Answer the page's question for a key, or for name and password."""
    page.locator("#key-name").fill(name)
    page.locator("#key-value").fill(token)
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()


def serious(page):
    """What axe finds that is serious or worse: [(rule, where)]."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        (each["id"], each["nodes"][0]["target"])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
