"""Every state in light, dark and on a phone: no serious finding of axe, no overflow."""

import itertools
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright import sync_api as api

from .conftest import watched

pytestmark = pytest.mark.browser

expect = api.expect

STATES = {
    "start": ("", ".welcome"),
    "results": ("?q=car", ".hit .quality"),
    "why": ("?q=car", ".hit .quality"),
    "facets": ("?q=harbour&is.kind=log&from.year=1995", ".hit .quality"),
    "feedback": ("?q=oven&positive=rolls&negative=cake", ".interpretation p"),
    "corrected": ("?q=engnie+brakse", ".interpretation p"),
    "nothing": ("?q=bread&is.kind=log", ".results .notice"),
    "compare": ("?q=car+oven&ranker=compare", ".column li"),
    "document": ("?q=car&view=document&id=sale", "ol.near li"),
    "map": ("?view=map", ".map-side li"),
    "map-lit": ("?view=map&q=harbour+storm", ".map-side .rank"),
    "suggestions": ("?q=", ".welcome"),
}
SCREENS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
}


@pytest.mark.parametrize("screen", SCREENS)
def test_every_state_is_accessible_and_fits_the_screen(browser, address, screen):
    options = {"reduced_motion": "reduce", **SCREENS[screen]}
    with watched(browser, address, **options) as page:
        for state, (query, awaited) in STATES.items():
            page.goto(f"{address}/{query}")
            page.locator(awaited).first.wait_for()
            if state == "why":
                page.locator(".hit", has_text="From the garage").get_by_role(
                    "button", name="Why this?"
                ).click()
                page.locator(".why-body").wait_for()
            if state == "facets" and screen == "phone":
                page.get_by_text("Filters and ranking").click()
            if state == "suggestions":
                page.locator("#q").fill("har")
                page.get_by_role("option").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), state
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            brightness = sum(int(each) for each in re.findall(r"\d+", background)[:3]) / 3
            assert (brightness < 100) == (screen == "dark"), background
            found = Axe().run(page).response["violations"]
            serious = [
                (each["id"], [node["html"] for node in each["nodes"]][:3])
                for each in found
                if each["impact"] in ("serious", "critical")
            ]
            assert not serious, state


def test_nothing_of_the_head_covers_another_whatever_the_width(browser, address):
    with watched(browser, address) as page:
        page.goto(f"{address}/?q=car")
        page.locator(".hit .quality").first.wait_for()
        page.evaluate("document.querySelector('.chooser').hidden = false")  # as with two indexes
        for width in (390, 700, 961, 1000, 1060, 1280, 1600):
            page.set_viewport_size({"width": width, "height": 800})
            places = [page.locator(each).bounding_box() for each in ("#brand", "#box", "#index")]
            for one, other in itertools.combinations(places, 2):
                apart = (
                    one["x"] + one["width"] <= other["x"]
                    or other["x"] + other["width"] <= one["x"]
                    or one["y"] + one["height"] <= other["y"]
                    or other["y"] + other["height"] <= one["y"]
                )
                assert apart, (width, one, other)


def test_truncated_metadata_keeps_names_with_their_values(browser, address):
    """An ellipsis stands for whole fields: each is one box of the line."""
    with watched(browser, address) as page:
        page.goto(f"{address}/?q=car")
        facts = page.locator(".hit .fact")
        facts.first.wait_for()
        shown = facts.evaluate_all("all => all.map((each) => getComputedStyle(each).display)")
        assert set(shown) == {"inline-block"}
