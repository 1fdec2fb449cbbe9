"""The map: move, zoom, hover, open, and highlight hits."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright import sync_api as api

from klsa_search.mining import map as maps

from .conftest import until, watched
from .notes import HOSTILE, HOSTILE_ID

pytestmark = pytest.mark.browser

expect = api.expect


@pytest.fixture
def map_(page, address):
    with page.expect_response(lambda each: each.url.endswith("/map")) as told:
        page.goto(f"{address}/?view=map")
    page.locator("canvas[data-points]").wait_for()
    map_ = told.value.json()
    expect(page.locator("canvas")).to_have_attribute("data-points", str(len(map_["ids"])))
    return map_


def view(page):
    """Scale and middle, as the canvas tells them."""
    return [float(each) for each in page.locator("canvas").get_attribute("data-view").split()]


def place(page, map_, id_):
    """Where a document is drawn, in px of the canvas."""
    number = map_["ids"].index(id_)
    scale, x, y = view(page)
    box = page.locator("canvas").bounding_box()
    across = (map_["x"][number] / 65_535 - x) * scale + box["width"] / 2
    down = (1 - map_["y"][number] / 65_535 - y) * scale + box["height"] / 2
    return {"x": across, "y": down}


def asked(page):
    return parse_qs(urlsplit(page.url).query)


def test_hits_that_the_map_leaves_out_are_lit_too(browser, address, monkeypatch):
    monkeypatch.setattr(maps, "MAX_POINTS", 15)
    with watched(browser, address) as page:
        page.goto(f"{address}/?view=map")
        canvas = page.locator("canvas")
        expect(canvas).to_have_attribute("data-points", "15")
        before = view(page)
        page.locator("#q").fill("harbour")
        expect(page.locator(".map-side .rank").first).to_be_visible()
        count = int(page.locator("#status").inner_text().split()[0])
        assert count > 15
        expect(canvas).to_have_attribute("data-lit", str(count))
        assert int(canvas.get_attribute("data-points")) > 15
        assert view(page) == before
    maps.cluster_layout.cache_clear()


def test_every_document_is_a_point(page, map_):
    assert len(map_["ids"]) + map_["unplaced"] == map_["documents"]
    assert page.locator("canvas").get_attribute("data-lit") == "0"
    painted = page.evaluate(
        "(() => { const c = document.querySelector('canvas');"
        " return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(Boolean) })()"
    )
    assert painted


def test_the_wheel_zooms_about_the_pointer(page, map_):
    canvas, before = page.locator("canvas"), view(page)
    shown = canvas.get_attribute("data-view")
    at = place(page, map_, "bread")
    canvas.hover(position=at)
    page.mouse.wheel(0, -300)
    until(page, lambda: view(page)[0] > 1.5 * before[0])
    assert place(page, map_, "bread") == pytest.approx(at, abs=1.5)
    page.get_by_role("button", name="Show all").click()
    expect(canvas).to_have_attribute("data-view", shown)


def test_dragging_moves_and_opens_nothing(page, map_):
    canvas = page.locator("canvas")
    shown = canvas.get_attribute("data-view")
    page.get_by_role("button", name="Zoom in").click()
    expect(canvas).not_to_have_attribute("data-view", shown)
    box, before = canvas.bounding_box(), view(page)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 60, middle[1] + 40, steps=4)
    page.mouse.up()

    def moved():
        scale, x, y = view(page)
        return (x - before[1], y - before[2]) == pytest.approx((60 / scale, -40 / scale), abs=0.003)

    until(page, moved)
    page.wait_for_timeout(100)
    assert asked(page) == {"view": ["map"]}


def test_two_fingers_zoom(page, map_):
    canvas, before = page.locator("canvas"), view(page)
    canvas.evaluate(
        """canvas => {
          const box = canvas.getBoundingClientRect();
          canvas.setPointerCapture = () => {};
          const finger = (kind, pointerId, x, y) => canvas.dispatchEvent(new PointerEvent(kind, {
            pointerId, pointerType: "touch", bubbles: true,
            clientX: box.x + x, clientY: box.y + y }));
          finger("pointerdown", 1, 200, 200);
          finger("pointerdown", 2, 300, 200);
          for (let x = 310; x <= 400; x += 10) finger("pointermove", 2, x, 200);
          finger("pointerup", 2, 400, 200);
          finger("pointerup", 1, 200, 200);
        }"""
    )
    until(page, lambda: view(page)[0] == pytest.approx(2 * before[0], rel=0.1))
    assert asked(page) == {"view": ["map"]}


def test_a_point_shows_its_title_and_opens(page, map_):
    canvas = page.locator("canvas")
    canvas.hover(position=place(page, map_, HOSTILE_ID))
    tip = page.locator(".map-tip")
    expect(tip).to_contain_text("ubmarines")
    if HOSTILE in tip.inner_text():
        assert tip.locator("script, img").count() == 0
    canvas.click(position=place(page, map_, "rolls"))
    page.locator("canvas").wait_for(state="detached")
    assert asked(page)["view"] == ["document"]
    assert asked(page)["id"][0] in map_["ids"]


def test_matches_are_highlighted_and_listed(page, map_):
    with page.expect_response(lambda each: "/search" in each.url) as told:
        page.locator("#q").fill("harbour storm")
    hits = told.value.json()["hits"]
    expect(page.locator("canvas")).to_have_attribute("data-lit", str(len(hits)))
    listed = page.locator(".map-side section").first.locator("li")
    expect(listed).to_have_count(10)
    expect(listed.first).to_contain_text(hits[0]["title"])
    expect(page.locator("#status")).to_contain_text("highlighted on the map")
    assert asked(page) == {"view": ["map"], "q": ["harbour storm"]}
    page.locator("#q").fill("")
    expect(page.locator("canvas")).to_have_attribute("data-lit", "0")
    expect(page.locator(".map-side section").first).to_be_hidden()


def test_clusters_are_a_list_of_links_to_what_they_are_about(page, map_):
    rows = page.locator(".map-side li a")
    expect(rows).to_have_count(len(map_["clusters"]))
    for row, one in zip(rows.all(), map_["clusters"], strict=True):
        expect(row).to_contain_text(", ".join(one["words"]))
        expect(row).to_contain_text(str(one["size"]))
    rows.first.focus()
    page.keyboard.press("Enter")
    page.locator(".hit").first.wait_for()
    assert asked(page) == {"q": [" ".join(map_["clusters"][0]["words"][:3])]}


def test_a_map_that_takes_long_is_requested_again(browser, address):
    """The service goes on drawing after it has told who asked that it takes too long."""
    late = {"error": {"code": "timed_out", "message": "it took more than 15 s", "field": None}}
    with watched(browser, address, expected=("503",)) as page:
        page.route("**/map", lambda route: route.fulfill(status=503, json=late), times=1)
        page.goto(f"{address}/?view=map")
        expect(page.locator(".map-wait")).to_contain_text("Drawing the map")
        page.locator("canvas[data-points]:not([data-points='0'])").wait_for()
        expect(page.locator(".map-wait")).to_be_hidden()


def test_an_index_without_documents_says_so(page, address):
    empty = {
        "index": "notes", "generation": "000001", "time_ms": 1, "documents": 0, "unplaced": 0,
        "clusters": [], "ids": [], "x": [], "y": [], "cluster": [],
    }  # fmt: skip
    page.route("**/map", lambda route: route.fulfill(json=empty))
    page.goto(f"{address}/?view=map")
    expect(page.locator(".map-wait")).to_have_text("No documents to draw.")
