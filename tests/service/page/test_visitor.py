"""What a visitor sees: no tools of research until they are opened, and only what the key allows."""

import pytest
from playwright import sync_api as api

from klsa_search import build
from klsa_search.service.admission import Writes
from klsa_search.service.keys import add_key
from klsa_search.service.open_indexes import OpenIndexes
from tests.service.sockets import serving

from .conftest import watched
from .writable_service import give_key, serious, writable

pytestmark = pytest.mark.browser

expect = api.expect

RESEARCH = [".meter", ".thumb", "#ranker-klsa", ".advanced", "dl.operators"]
SCREENS = [
    {"color_scheme": "light"},
    {"color_scheme": "dark"},
    {"viewport": {"width": 360, "height": 740}},
]


@pytest.fixture
def page(browser, address):
    with watched(browser, address, tools=False) as opened:
        yield opened


def seen(page, selectors=RESEARCH):
    return [each for each in selectors if page.locator(each).count()]


def test_a_visitor_sees_results_filters_and_sorting_but_no_tools(page, address):
    page.goto(address)
    page.get_by_text("Search 40 documents", exact=True).wait_for()
    assert not seen(page)
    page.goto(f"{address}/?q=automobile")
    page.get_by_text("Good matches found").wait_for()
    expect(page.get_by_label("Sort by")).to_be_visible()
    expect(page.get_by_role("group", name="kind")).to_be_visible()
    assert not seen(page)
    for hidden in ("#views", ".chooser"):
        expect(page.locator(hidden)).to_be_hidden()
    page.get_by_role("link", name="For sale", exact=True).click()
    page.locator("ol.near li").first.wait_for()
    expect(page.locator(".segments, .weighed, .near .number")).to_have_count(0)


def test_the_switch_is_remembered_and_closing_resets_what_tools_changed(page, address):
    page.goto(f"{address}/?q=automobile")
    tools = page.get_by_role("button", name="Tools")
    tools.click()
    page.locator(".hit .quality").first.wait_for()
    expect(tools).to_be_focused()
    expect(tools).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("link", name="Map", exact=True)).to_be_visible()
    page.reload()
    page.locator(".hit .quality").first.wait_for()
    page.get_by_label("BM25").check()
    page.wait_for_url("**ranker=bm25**")
    tools.click()
    page.wait_for_url(lambda url: "ranker" not in url)
    expect(page.locator("#ranker-klsa")).to_have_count(0)
    page.reload()
    page.locator(".hit").first.wait_for()
    assert not seen(page)


@pytest.mark.parametrize("link", ["q=car&ranker=bm25", "q=car&alpha=0.2", "view=map"])
def test_a_link_to_what_a_tool_shows_has_the_tool(page, address, link):
    page.goto(f"{address}/?{link}")
    expect(page.get_by_role("button", name="Tools")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("link", name="Map", exact=True)).to_be_visible()


def test_a_thumb_keeps_the_focus(browser, address):
    with watched(browser, address) as page:
        page.goto(f"{address}/?q=automobile")
        thumb = page.get_by_role("button", name="More hits like For sale")
        thumb.click()
        expect(page.locator(".interpretation")).to_contain_text("More like For sale")
        expect(thumb).to_have_attribute("aria-pressed", "true")
        expect(thumb).to_be_focused()


def test_an_index_has_a_title_and_one_that_a_key_does_not_allow_none(browser, tmp_path):
    documents = [{"id": "1", "text": "A red bicycle."}, {"id": "2", "text": "A blue car."}]
    for name, title in (("shop", "Our <b>shop</b>"), ("help", "")):
        build(documents, name=name, home=tmp_path, page_title=title).close()
    with OpenIndexes(tmp_path) as open_indexes, serving(open_indexes) as served:
        address = f"http://127.0.0.1:{served.address[1]}"
        with watched(browser, address, tools=False) as page:
            page.goto(f"{address}/?index=shop")
            expect(page.locator("#index option")).to_have_text(["help", "Our <b>shop</b>"])
            assert page.title() == "klsa-search"
    file = tmp_path / "keys.json"
    key = add_key(file, "shop", ["search"], ["shop"])
    with (
        writable(tmp_path, file) as address,
        watched(browser, address, expected=["401"], tools=False) as page,
    ):
        page.goto(f"{address}/?q=bicycle")
        give_key(page, key)
        page.locator(".hit").first.wait_for()
        expect(page.locator("#title")).to_have_text("Our <b>shop</b>")
        assert page.title() == "bicycle · Our <b>shop</b>"
        expect(page.locator(".chooser")).to_be_hidden()
        expect(page.locator("#views")).to_be_hidden()  # as the key may not write
        assert "help" not in page.content()


def test_visitors_get_the_index_of_the_operator_and_no_tools(browser, tmp_path):
    for name in ("a", "help"):
        build([{"id": "1", "text": f"A bicycle of {name}."}], name=name, home=tmp_path).close()
    search_page = {"title": "Help", "front_index": "help"}
    with OpenIndexes(tmp_path) as open_indexes:
        with (
            serving(open_indexes, page=search_page) as served,
            watched(browser, f"http://127.0.0.1:{served.address[1]}") as page,
        ):
            address = f"http://127.0.0.1:{served.address[1]}"
            for query in ("?q=bicycle", "?q=bicycle&view=map", "?q=bicycle&ranker=bm25"):
                page.goto(f"{address}/{query}")
                expect(page.locator(".hit")).to_contain_text("bicycle of help")
                assert not seen(page)
                for hidden in ("#views", ".chooser"):
                    expect(page.locator(hidden)).to_be_hidden()
                expect(page.get_by_role("button", name="Tools")).to_have_count(0)
        with (
            serving(open_indexes, page=search_page, writes=Writes()) as served,
            watched(browser, f"http://127.0.0.1:{served.address[1]}") as page,
        ):
            page.goto(f"http://127.0.0.1:{served.address[1]}/?q=bicycle")
            expect(page.locator(".hit")).to_contain_text("bicycle of help")
            expect(page.locator(".chooser")).to_be_visible()
            expect(page.get_by_role("button", name="Tools")).to_be_visible()


def test_an_index_that_is_gone_leads_to_another(browser, address):
    with watched(browser, address, expected=["404"], tools=False) as page:
        page.goto(f"{address}/?q=car&index=gone")
        expect(page.get_by_role("alert")).to_contain_text("renamed or deleted")
        expect(page.get_by_role("alert")).not_to_contain_text("GET")
        page.get_by_role("button", name="Search another index").click()
        page.get_by_text("Search 40 documents", exact=True).wait_for()


@pytest.mark.parametrize("screen", SCREENS, ids=["light", "dark", "phone"])
def test_the_page_of_a_visitor_is_accessible_and_fits_the_screen(browser, address, screen):
    with watched(browser, address, tools=False, reduced_motion="reduce", **screen) as page:
        for query, awaited in (("", ".welcome"), ("?q=car", ".verdict.good, .verdict.poor"),
                               ("?view=document&id=sale", "ol.near li")):  # fmt: skip
            page.goto(f"{address}/{query}")
            page.locator(awaited).first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), query
            assert not serious(page), query
