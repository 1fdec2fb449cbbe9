"""With API keys, the page is public and the documents are not."""

from klsa_search.service.catalog import Catalog
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from tests.service.sockets import serving

from .conftest import api, watched

expect = api.expect


def test_the_page_asks_for_a_key_and_keeps_it(browser, notes_home, tmp_path):
    file = tmp_path / "keys.json"
    key = add_key(file, "reader", ["search"])
    with Catalog(notes_home) as catalog, serving(catalog, keys=Keys(file, set())) as served:
        address = f"http://127.0.0.1:{served.address[1]}"
        with watched(browser, address, expected=["401"]) as page:
            page.goto(f"{address}/?q=oven")
            dialog = page.get_by_role("dialog")
            expect(dialog).to_contain_text("API key required")
            page.locator("#key-value").fill("wrong")
            page.keyboard.press("Enter")
            expect(dialog).to_contain_text("invalid or revoked")
            page.keyboard.press("Escape")  # without a key there is nothing to see
            expect(dialog).to_be_visible()
            page.locator("#key-value").fill(key)
            page.get_by_role("button", name="Continue").click()
            expect(page.locator(".hit h2", has_text="Cake")).to_be_visible()
            page.reload()
            expect(page.locator(".hit h2", has_text="Cake")).to_be_visible()
            assert key not in page.url
            assert page.evaluate("Object.keys(localStorage).length") == 0
