"""Judging hits, and comparing rankers by the judgements."""

import pytest

from klsa_search import open_index
from klsa_search.service.keys import add_key

from .conftest import watched
from .notes import HOSTILE_ID
from .writable_service import SIZES, give_key, serious, writable

pytestmark = pytest.mark.browser

RIGHT = {
    "automobile": ("mot", "sale", "brakes"),
    "dough": ("bread", "rolls"),
    "ship in harbour": ("log-1", "log-5"),
    "spring": ("lawn",),
}


@pytest.fixture
def judging(browser, home):
    with writable(home) as address, watched(browser, address) as page:
        page.goto(f"{address}/?view=judge&q=oven")
        page.locator(".pool .candidate").first.wait_for()
        yield page


def said(home):
    """What the index was told: {query: {id: grade}}."""
    index = open_index(home / "notes")
    found = {each.text: dict(each.grades) for each in index.judgements.queries()}
    index.close()
    return found


def press(page, verdict, title):
    button = page.get_by_role("button", name=f"{verdict}: {title}", exact=True)
    with page.expect_response(lambda each: "/judgements" in each.url):
        button.click()
    return button


def test_hits_are_judged_and_the_last_word_counts(judging, home):
    page = judging
    assert {"Bread", "Cake", "Rolls", "Pie"} <= set(page.locator(".pool h3").all_inner_texts())
    press(page, "Relevant", "Bread")
    press(page, "Not relevant", "Pie")
    button = press(page, "Not relevant", "Cake")
    page.locator(".pool [role=status]", has_text="3 of").wait_for()
    assert said(home) == {"oven": {"bread": 1, "pie": 0, "cake": 0}}
    assert button.get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.activeElement.title") == "Not relevant"  # where the finger was
    press(page, "Relevant", "Cake")
    press(page, "Not relevant", "Pie")  # pressed again it is taken back
    page.locator(".pool [role=status]", has_text="2 of").wait_for()
    assert said(home) == {"oven": {"bread": 1, "cake": 1}}
    page.locator(".queries", has_text="2 relevant, 0 not relevant").wait_for()
    page.reload()
    again = page.get_by_role("button", name="Relevant: Bread", exact=True)
    again.wait_for()
    assert again.get_attribute("aria-pressed") == "true"


def test_queries_are_listed_exported_and_forgotten(judging, home):
    page = judging
    press(page, "Relevant", "Bread")
    page.locator("#q").fill("submarines")
    page.locator(".pool h2", has_text="submarines").wait_for()
    page.locator(f'.pool [data-id="{HOSTILE_ID.replace(chr(34), chr(92) + chr(34))}"]').wait_for()
    with page.expect_response(lambda each: "/judgements" in each.url):
        page.locator(".pool .say.yes").first.click()
    page.locator(".queries a", has_text="submarines").wait_for()
    for name, content in (
        ("notes.tsv", "1\toven\n2\tsubmarines\n"),
        ("notes.qrels", "1 0 bread 1\n2 0 "),
    ):
        with page.expect_download() as fetched:
            page.locator(f'a[download="{name}"]').click()
        assert fetched.value.path().read_text().startswith(content)
    page.locator(".queries a", has_text="oven").click()
    page.locator(".pool h2", has_text="oven").wait_for()
    page.get_by_role("button", name="Delete the judgements of submarines").click()
    page.locator(".queries a", has_text="submarines").wait_for(state="detached")
    assert said(home) == {"oven": {"bread": 1}}


def test_rankers_are_measured(judging, home, browser):
    page = judging
    assert not page.get_by_role("button", name="Measure").is_visible()
    index = open_index(home / "notes")
    for query, right in RIGHT.items():
        for id_ in right:
            index.judge(query, id_, 1)
        index.judge(query, "cake", 0)
    index.close()
    page.reload()
    page.get_by_role("button", name="Measure").click()
    page.locator("table.rankers tbody tr").first.wait_for()
    rows = page.locator("table.rankers tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["BM25", "Kernel LSA"]
    cells = page.locator("table.rankers tbody tr").nth(1).locator("td").all_inner_texts()
    assert sum(int(each) for each in cells[2:5]) == 4
    assert 0 < float(cells[0]) <= 1
    assert page.locator(".contrast svg rect").count() == 4
    assert serious(page) == []
    for options in SIZES.values():
        page.set_viewport_size(options["viewport"])
        page.emulate_media(color_scheme=options.get("color_scheme", "light"))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_key_that_may_not_write_is_reported_and_another_accepted(browser, home, tmp_path):
    file = tmp_path / "keys.json"
    reader = add_key(file, "reader", ["search"])
    writer = add_key(file, "writer", ["search", "write"])
    with (
        writable(home, file) as address,
        watched(browser, address, expected=("401", "403")) as page,
    ):
        page.goto(f"{address}/?view=judge&q=oven")
        give_key(page, reader)
        page.locator(".pool .candidate").first.wait_for()
        press(page, "Relevant", "Bread")
        page.get_by_role("heading", name="Not allowed").wait_for()
        page.get_by_role("button", name="Sign in as another user").click()
        give_key(page, writer)
        page.get_by_role("heading", name="Not allowed").wait_for(state="detached")
        page.get_by_role("button", name="Relevant: Bread", exact=True).wait_for()
        press(page, "Relevant", "Bread")
        page.locator(".queries a", has_text="oven").wait_for()
    assert said(home) == {"oven": {"bread": 1}}
