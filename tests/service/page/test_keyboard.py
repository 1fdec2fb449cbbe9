"""The page can be used by keyboard alone."""

import pytest
from playwright import sync_api as api

from .conftest import watched
from .writable_service import writable

pytestmark = pytest.mark.browser

expect = api.expect
FURTHEST = 150  # presses of Tab


@pytest.fixture
def page(browser, home):
    with writable(home) as address, watched(browser, address) as opened:
        opened.goto(f"{address}/?q=automobile")
        opened.locator(".hit .quality").first.wait_for()
        yield opened


def reach(page, locator, key="Tab"):
    """Press Tab until an element has the focus, which has to be seen there."""
    target = locator.first
    target.wait_for()
    for _ in range(FURTHEST):
        if target.evaluate("(node) => node === document.activeElement"):
            seen = "(node) => node.matches(':focus-visible')"
            assert target.evaluate(seen), "the focus is not seen"
            return
        page.keyboard.press(key)
    raise AssertionError(f"Tab does not reach {locator}")


def press(page, locator, key="Enter"):
    reach(page, locator)
    page.keyboard.press(key)


def test_searching(page):
    press(page, page.get_by_role("link", name="Skip to the results"))
    press(page, page.get_by_role("button", name="Why this? From the garage"))
    page.locator(".why-body").first.wait_for()
    press(page, page.get_by_role("button", name="More hits like For sale"))
    expect(page.locator(".interpretation")).to_contain_text("More like For sale")
    press(page, page.get_by_role("link", name="Undo"))
    expect(page.locator(".interpretation")).to_be_empty()
    page.keyboard.press("/")
    page.keyboard.press("Control+a")
    page.keyboard.type("harb")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#q")).not_to_have_value("harb")
    press(page, page.get_by_role("group", name="kind").get_by_label("log"), "Space")
    page.wait_for_url("**is.kind=log**")
    clear = page.get_by_role("button", name="Clear all filters")
    clear.wait_for()  # with which fields are drawn anew, and what is typed in one would be gone
    first = page.get_by_role("group", name="year").get_by_label("from", exact=True)
    reach(page, first)
    page.keyboard.type("2010")
    page.keyboard.press("Enter")
    page.wait_for_url("**from.year=2010**")
    reach(page, page.get_by_label("Sort by"))
    page.keyboard.press("End")  # typed, a slow machine takes each letter for a new word
    page.wait_for_url("**sort=year%3Adesc**")
    expect(page.locator(".hit h2").first).to_have_text("Harbour log 27")
    expect(page.get_by_label("Sort by")).to_be_focused()
    press(page, clear)
    expect(clear).to_have_count(0)
    press(page, page.get_by_role("link", name="Next page"))
    page.wait_for_url("**page=2**")


def test_ranking_and_the_page_of_a_document(page):
    press(page, page.get_by_text("Advanced", exact=True), "Enter")
    slider = page.get_by_role("slider", name="Related words")
    reach(page, slider)
    before = float(slider.input_value())
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**alpha=**")
    assert float(slider.input_value()) < before
    reach(page, page.locator("#ranker-klsa"), "Shift+Tab")
    page.keyboard.press("ArrowDown")
    page.wait_for_url("**ranker=bm25**")
    page.keyboard.press("ArrowDown")
    page.locator(".column li").first.wait_for()
    row = page.locator(".column").last.locator("li a")
    press(page, row)
    page.locator("article h1").wait_for()
    with page.expect_response(lambda each: "kernel=document" in each.url) as told:
        press(page, page.get_by_role("button", name="Same words"), "Space")
    expect(page.get_by_role("button", name="Same words")).to_have_attribute("aria-pressed", "true")
    scores = [f"{hit['score']:.2f}" for hit in told.value.json()["hits"]]
    expect(page.locator(".near .number")).to_have_text(scores)
    near = page.locator(".near a").first
    title = near.inner_text()
    press(page, near)
    expect(page.locator("article h1")).to_have_text(title)
    press(page, page.locator("a.back"))
    page.locator(".column li, .hit").first.wait_for()


def test_the_map(page):
    press(page, page.get_by_role("link", name="Map", exact=True))
    canvas = page.locator("canvas")
    expect(canvas).to_have_attribute("data-points", "40")
    reach(page, canvas)
    before = canvas.get_attribute("data-view")
    page.keyboard.press("+")
    expect(canvas).not_to_have_attribute("data-view", before)
    page.keyboard.press("0")
    expect(canvas).to_have_attribute("data-view", before)
    press(page, page.get_by_role("button", name="Zoom in"))
    expect(canvas).not_to_have_attribute("data-view", before)
    press(page, page.locator(".map-side section").last.locator("li a"))
    page.locator(".hit").first.wait_for()


def test_judging_and_looking_after_an_index(page):
    press(page, page.get_by_role("link", name="Judge", exact=True))
    button = page.get_by_role("button", name="Relevant: Failed test", exact=True)
    press(page, button, "Space")
    expect(button).to_have_attribute("aria-pressed", "true")
    reach(page, button)  # which it has kept, drawn anew
    press(page, page.get_by_role("button", name="Measure"))
    page.locator("table.rankers").wait_for()
    press(page, page.get_by_role("button", name="Delete the judgements of automobile"))
    page.locator(".judged").get_by_text("None yet").wait_for()
    page.evaluate("document.activeElement.blur()")
    press(page, page.get_by_role("link", name="Admin", exact=True))
    page.get_by_role("heading", name="Statistics").wait_for()
    with page.expect_file_chooser():
        press(page, page.locator("#files"))
    reach(page, page.locator(".knob input"))
    page.keyboard.press("ArrowRight")
    reach(page, page.get_by_role("button", name="Refit now"))


def test_letters_of_an_input_method_are_searched_once_chosen(page):
    page.locator("#q").fill("")
    page.wait_for_url(lambda url: "q=" not in url)
    typed = []
    page.on("request", lambda sent: typed.append(sent.post_data or sent.url))
    method = page.context.new_cdp_session(page)
    composed = {"text": "harb", "selectionStart": 4, "selectionEnd": 4}
    method.send("Input.imeSetComposition", composed)
    page.wait_for_timeout(500)
    assert page.locator("#q").input_value() == "harb"
    assert not [request for request in typed if "harb" in request]
    method.send("Input.insertText", {"text": "harbour"})
    page.wait_for_url("**q=harbour**")
    assert not [request for request in typed if '"harb"' in request]
