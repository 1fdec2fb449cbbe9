"""With API keys, the page is public and the documents are not."""

from contextlib import ExitStack, contextmanager

import pytest
from playwright import sync_api as api

from klsa_search.service.keys import add_key, revoke_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.server import configured
from tests.service import sockets
from tests.service.sockets import serving

from .conftest import until, watched
from .writable_service import SIZES, give_key, serious

pytestmark = pytest.mark.browser

expect = api.expect


@contextmanager
def keyed(home, file):
    with OpenIndexes(home) as open_indexes, serving(open_indexes, keys=Keys(file, set())) as served:
        yield f"http://127.0.0.1:{served.address[1]}"


def held_back(page, url, count):
    """Return the list to which the first requests of a URL will be added instead of being sent."""
    held = []
    page.route(url, lambda route: held.append(route) if len(held) < count else route.fallback())
    return held


def stored(page):
    """All that a script of the page could read."""
    return page.evaluate(
        "JSON.stringify([localStorage, sessionStorage, document.cookie, location])"
    )


def test_a_key_is_entered_once_until_the_user_signs_out(browser, home, file):
    key = add_key(file, "reader", ["search"])
    with keyed(home, file) as address, watched(browser, address, expected=["401"]) as page:
        page.goto(f"{address}/?q=oven")
        dialog = page.get_by_role("dialog")
        give_key(page, "wrong")
        expect(dialog).to_contain_text("ask the person who runs this service for another")
        expect(dialog).not_to_contain_text("klsa-keys")
        page.keyboard.press("Escape")
        expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
        page.get_by_role("button", name="Sign in").click()
        give_key(page, key)
        expect(page.locator(".hit h2", has_text="Cake")).to_be_visible()
        assert key not in stored(page)
        page.reload()
        expect(page.locator(".hit h2", has_text="Cake")).to_be_visible()
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], key in cookie["value"]) == (
            True, "Strict", False,
        )  # fmt: skip
        expect(page.locator("#foot")).to_contain_text("Signed in as reader")
        page.get_by_role("button", name="Sign out").click()
        expect(dialog).to_be_visible()
        assert page.context.cookies() == []
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()


def test_a_user_signs_in_by_name_and_password(browser, home, file):
    password = add_key(file, "anna", ["search"], is_user=True)
    with keyed(home, file) as address, watched(browser, address, expected=["401"]) as page:
        page.goto(f"{address}/?q=oven")
        give_key(page, "wrong", "anna")
        expect(page.get_by_role("dialog")).to_contain_text("Check that you copied all of it")
        give_key(page, password, "anna")
        expect(page.locator(".hit h2", has_text="Cake")).to_be_visible()
        expect(page.locator("#foot")).to_contain_text("Signed in as anna")
        assert password not in stored(page)


def test_the_page_asks_again_when_the_key_is_revoked(browser, home, file):
    """Not because of suggestions: the dialog would take the keys of who begins to type."""
    old, new = add_key(file, "old", ["search"]), add_key(file, "new", ["search"])
    with keyed(home, file) as address, watched(browser, address, expected=["401"]) as page:
        suggestions = held_back(page, "**/suggest?*", 8)
        page.goto(address)
        give_key(page, old)
        page.locator(".welcome").wait_for()
        until(page, lambda: len(suggestions) == 8)
        revoke_key(file, "old")
        with page.expect_response("**/suggest?*") as told:
            for route in suggestions:
                route.continue_()
        assert told.value.status == 401
        page.locator("#q").fill("oven")
        give_key(page, new)
        expect(page.locator(".hit h2", has_text="Cake")).to_be_visible()


def test_text_typed_after_signing_in_is_searched(browser, home, file):
    """Also if a request from before is refused only then."""
    key = add_key(file, "reader", ["search"])
    with keyed(home, file) as address, watched(browser, address, expected=["401"]) as page:
        late = held_back(page, "**/session", 1)
        page.goto(address)
        page.get_by_role("dialog").wait_for()
        until(page, lambda: late)
        give_key(page, key)
        expect(page.get_by_role("dialog")).to_be_hidden()
        page.keyboard.type("ov")
        with page.expect_response("**/session"):
            late[0].fulfill(status=401, json={"error": {"code": "invalid_key", "message": "late"}})
        page.keyboard.type("en")
        expect(page.locator("#q")).to_have_value("oven")
        expect(page.locator(".hit h2", has_text="Cake")).to_be_visible()


def test_services_on_two_ports_neither_share_nor_end_their_sessions(browser, home, tmp_path):
    """Browsers send cookies to all ports of a host, and call them the same site."""
    files = [tmp_path / name for name in ("one.json", "two.json")]
    keys = [add_key(file, "reader", ["search", "write"]) for file in files]
    context = browser.new_context()
    with ExitStack() as stack:
        addresses = [stack.enter_context(keyed(home, file)) for file in files]
        page = context.new_page()
        for address, key in zip(addresses, keys, strict=True):
            page.goto(address)
            give_key(page, key)
            page.locator(".welcome").wait_for()
        for address in addresses:
            page.goto(address)
            page.locator(".welcome").wait_for()
        page.goto(f"{addresses[1]}/health")  # without the policy of the page
        with page.expect_response(lambda each: each.url.startswith(addresses[0])) as told:
            page.evaluate(
                "url => fetch(url, {mode: 'no-cors', credentials: 'include'}).then(() => 1)",
                f"{addresses[0]}/indexes",
            )
        assert told.value.status == 401
        page.goto(addresses[1])
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("dialog").wait_for()
        page.goto(addresses[0])
        page.locator(".welcome").wait_for()
        context.close()


def test_behind_a_proxy_with_a_prefix_the_cookie_is_for_the_prefix(
    browser, home, file, monkeypatch
):
    key = add_key(file, "reader", ["search"])
    monkeypatch.setattr(sockets, "configured", behind_prefix)
    with keyed(home, file) as address, watched(browser, address, expected=["401"]) as page:
        page.goto(f"{address}/team/")
        give_key(page, key)
        page.locator(".welcome").wait_for()
        page.reload()
        page.locator(".welcome").wait_for()
        assert [each["path"] for each in page.context.cookies()] == ["/team"]


def behind_prefix(app, settings, **options):
    """Return the configuration of a server that removes /team from paths, as a proxy does."""

    async def proxy(scope, receive, send):
        path = scope.get("path", "").removeprefix("/team")
        await app({**scope, "path": path}, receive, send)

    return configured(proxy, settings, **options)


@pytest.mark.parametrize("size", ["wide", "phone"])
def test_a_user_changes_its_password(browser, home, file, size):
    password, chosen = add_key(file, "anna", ["search"], is_user=True), "Grüße vom Kaffee"
    with ExitStack() as stack:
        address = stack.enter_context(keyed(home, file))
        options = {"expected": ["401"], **SIZES[size]}
        page = stack.enter_context(watched(browser, address, **options))
        page.goto(f"{address}/?q=oven")
        give_key(page, password, "anna")
        page.get_by_role("button", name="Change password").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("heading", name="Change password")).to_be_visible()
        assert serious(page) == []
        dialog.get_by_label("New password").fill(chosen)
        dialog.get_by_label("Current password").fill("wrong")
        page.keyboard.press("Enter")
        expect(dialog).to_contain_text("Check that you copied all of it")
        dialog.get_by_label("Current password").fill(password)
        dialog.get_by_role("button", name="Change password").click()
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("status")).to_have_text("The password was changed.")
        page.reload()
        page.get_by_role("button", name="Sign out").click()
        give_key(page, chosen, "anna")
        expect(page.get_by_text("Signed in as anna")).to_be_visible()
        assert chosen not in stored(page)
