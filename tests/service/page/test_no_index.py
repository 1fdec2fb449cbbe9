"""The page of a service without an index."""

import json
import re

import httpx
import pytest
from playwright import sync_api as api

from klsa_search.service.open_indexes import OpenIndexes
from tests.service.sockets import serving

from .conftest import watched
from .writable_service import writable

pytestmark = pytest.mark.browser

expect = api.expect


def test_the_page_says_how_to_create_an_index(browser, tmp_path):
    with writable(tmp_path) as address, watched(browser, address) as page:
        page.goto(address)
        expect(page.get_by_role("heading", name="No index yet")).to_be_visible()
        expect(page.locator("#box")).to_be_hidden()
        expect(page.locator("#views")).to_be_hidden()
        width = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, "the page is wider than the screen"
        command, calls = page.locator("pre").all_inner_texts()
        assert command == "klsa-index build FILE-OR-FOLDER --name NAME"
        for url, body in re.findall(r"curl -X POST '(.+?)' .* -d '(.+)'", calls):
            assert httpx.post(url, json=json.loads(body)).is_success
        (url,) = re.findall(r"curl -T FILE '(.+)'", calls)
        assert httpx.put(f"{url}a.txt", content=b"TEXT").json()["added"] == 1
        page.reload()
        expect(page.locator("#box")).to_be_visible()
        assert page.locator("#index").input_value() == "NAME"


def test_without_write_access_the_page_shows_the_command_only(browser, tmp_path):
    with (
        OpenIndexes(tmp_path) as open_indexes,
        serving(open_indexes) as served,
        watched(browser, f"http://127.0.0.1:{served.address[1]}") as page,
    ):
        page.goto(f"http://127.0.0.1:{served.address[1]}")
        expect(page.locator("pre")).to_have_text("klsa-index build FILE-OR-FOLDER --name NAME")
