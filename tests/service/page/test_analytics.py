"""The view of analytics, and the clicks that the page records."""

import time

import pytest

from klsa_search.search.index import open_index
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.analytics.store import Store

from .conftest import until, watched
from .writable_service import SIZES, serious, writable

pytestmark = pytest.mark.browser


@pytest.fixture
def recorder(home):
    with_file = Recorder(home, days=90, min_searches=1)
    yield with_file
    with_file.close()


def recorded(page):
    """Wait until a search was recorded."""
    return page.expect_response(
        lambda each: "/search" in each.url and each.request.post_data and each.ok
        and '"search_id"' in each.text()
    )  # fmt: skip


def searched(page, address, q):
    with recorded(page):
        page.goto(f"{address}/?q={q}")
    page.wait_for_timeout(1000)  # until it stands


def test_clicks_are_recorded_and_a_proposed_synonym_is_added(browser, home, recorder):
    with writable(home, recorder=recorder) as address, watched(browser, address) as page:
        for q, title in (("oven", "Bread"), ("oven", "Cake")):
            searched(page, address, q)
            page.locator("#q").fill("kiln zzyx")  # replaces nothing: the first has no click yet
            page.locator("#q").fill(q)
            with page.expect_response(lambda each: "/events" in each.url) as sent:
                page.locator(".hit h2 a", has_text=title).click()
            assert sent.value.status == 202
        for _ in range(2):
            searched(page, address, "loaf")
            with recorded(page):
                page.locator("#q").fill("bread")
            with page.expect_response(lambda each: "/events" in each.url):
                page.locator(".hit h2 a", has_text="Bread").click()
        recorder.flush()
        Store(recorder.home).settle(time.time() + 60)
        page.goto(f"{address}/?view=analytics")
        page.get_by_role("heading", name="Searches by day").wait_for()
        assert page.locator(".chart rect.column").count() == 30
        assert page.get_by_role("link", name="oven", exact=True).first.is_visible()
        clicked = page.locator("section", has_text="Most clicked documents").last
        assert set(clicked.locator("tbody a").all_inner_texts()) == {"bread", "cake"}
        assert serious(page) == []
        for options in SIZES.values():
            page.set_viewport_size(options["viewport"])
            page.emulate_media(color_scheme=options.get("color_scheme", "light"))
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

        def edit_meanwhile(route):
            if route.request.method != "GET":  # another editor comes first
                with open_index(home / "notes") as index:
                    index.set_synonyms({**index.synonyms, "stove": ["oven"]})
            route.continue_()

        page.route("**/synonyms", edit_meanwhile)
        page.get_by_role("button", name="Add synonym bread for loaf").click()
        page.get_by_text("Added: loaf also finds bread.").wait_for()

        def added():
            with open_index(home / "notes") as index:
                return dict(index.synonyms)

        until(page, lambda: "loaf" in added())
        assert added() == {"loaf": ("bread",), "stove": ("oven",)}
        with page.expect_download() as fetched:
            page.locator('a[download="notes-queries.csv"]').click()
        assert fetched.value.path().read_text().startswith("query,searches,")
        page.get_by_role("link", name="Search it").click()
        page.locator(".hit h2 a", has_text="Bread").wait_for()


def test_without_analytics_the_view_says_so(browser, home):
    with writable(home) as address, watched(browser, address, expected=("403",)) as page:
        page.goto(f"{address}/?view=analytics")
        page.get_by_role("heading", name="There are no analytics").wait_for()
