"""Search as you type, filters, pages, and messages for few hits."""

import csv
import io
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright import sync_api as api

from klsa_search import build
from klsa_search.search.index import open_index
from klsa_search.service.open_indexes import OpenIndexes
from tests.service.sockets import serving
from tests.support.waiting import wait_until

from .conftest import until, watched
from .notes import HOSTILE

pytestmark = pytest.mark.browser

expect = api.expect


def titles(page):
    return page.locator(".hit h2").all_inner_texts()


def asked(page):
    return parse_qs(urlsplit(page.url).query)


def is_answer(response, text):
    """Whether it answers this text, and is no file of the page."""
    asked = response.request.post_data_json if response.request.method == "POST" else {}
    return urlsplit(response.url).path.endswith("/search") and asked.get("q") == text


IS_SHOWN = """({ids, time}) => {
    const shown = [...document.querySelectorAll("#results .hit")].map((node) => node.dataset.id);
    const took = document.querySelector(".summary .quiet")?.textContent;
    const told = time < 1000 ? `${time.toFixed(1)} ms` : `${(time / 1000).toFixed(1)} s`;
    return shown.join("\\n") === ids.join("\\n") && took === ` in ${told}`;
}"""


def search(page, text, typing=None):
    """Type, and wait until the answer to the last letter is shown."""
    page.locator("#q").fill("")
    with page.expect_response(lambda each: is_answer(each, text)) as told:
        page.locator("#q").fill(text) if typing is None else typing()
    assert told.value.ok
    answer = told.value.json()
    wanted = {"ids": [hit["id"] for hit in answer["hits"]], "time": answer["time_ms"]}
    page.wait_for_function(IS_SHOWN, arg=wanted)


def test_each_letter_searches_and_the_address_is_a_link_to_the_answer(page, address):
    box = page.locator("#q")
    search(page, "automobile", lambda: box.press_sequentially("automobile", delay=20))
    page.locator(".hit mark").first.wait_for()
    expect(page.locator(".summary p")).to_contain_text("documents in")
    expect(page.locator(".summary p")).to_contain_text(" ms")
    assert {"Failed test", "For sale", "From the garage"} <= set(titles(page))
    assert page.locator(".hit mark").first.inner_text().lower() == "automobile"
    assert asked(page) == {"q": ["automobile"]}
    assert page.title() == "automobile · klsa-search"
    assert page.locator("#status").inner_text() != ""
    found = titles(page)
    page.reload()
    page.locator(".hit").first.wait_for()
    assert titles(page) == found
    page.go_back()  # what was typed in one go is one step
    page.locator(".welcome").wait_for()
    assert box.input_value() == ""
    page.go_forward()
    page.locator(".hit").first.wait_for()
    assert box.input_value() == "automobile"


def test_an_answer_that_comes_late_is_dropped(page):
    waiting = []

    def late(route):
        if '"q":"fer"' in route.request.post_data:
            waiting.append(route)
        else:
            route.continue_()

    page.route("**/indexes/notes/search", late)
    page.locator("#q").fill("fer")
    until(page, lambda: waiting)
    page.locator("#q").fill("oven")
    page.get_by_role("link", name="Bread", exact=True).wait_for()
    before = titles(page)
    for each in waiting:
        each.abort()  # the page has done so before
    page.wait_for_timeout(100)
    assert titles(page) == before


def test_suggestions_by_keyboard(page):
    box, options = page.locator("#q"), page.locator("#suggestions").get_by_role("option")
    box.fill("har")  # in one, as each letter has suggestions drawn anew
    options.first.wait_for()
    assert box.get_attribute("aria-expanded") == "true"
    box.press("ArrowDown")
    assert options.first.get_attribute("aria-selected") == "true"
    assert box.get_attribute("aria-activedescendant") == options.first.get_attribute("id")
    chosen = options.first.locator(".said").inner_text()
    box.press("Enter")
    assert box.input_value() == chosen
    assert box.get_attribute("aria-expanded") == "false"
    box.fill(f"{chosen} l")
    options.first.wait_for()
    box.press("Escape")
    assert not page.locator("#suggestions").is_visible()
    page.get_by_label("Sort by").focus()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "sort"  # a list takes letters itself
    page.locator("#main").focus()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"


def test_text_typed_before_the_indexes_are_listed_gets_suggestions(browser, address):
    with watched(browser, address) as page:
        waiting = []
        page.route("**/indexes", lambda route: waiting.append(route))
        page.goto(address)
        until(page, lambda: waiting)
        page.locator("#q").fill("har")
        page.wait_for_timeout(200)
        for each in waiting:
            each.continue_()
        page.locator("#suggestions li").first.wait_for(timeout=15_000)


def test_facets_filter_sort_and_pages(page):
    search(page, "harbour")
    assert page.locator(".hit").count() == 10
    page.get_by_role("link", name="Page 3").click()
    page.locator(".pager [aria-current]", has_text="3").wait_for()
    assert 0 < page.locator(".hit").count() <= 10
    assert asked(page)["page"] == ["3"]
    page.go_back()
    page.locator(".hit").first.wait_for()
    search(page, "hot oven ferry")
    kind = page.get_by_role("group", name="kind")
    kind.get_by_label("kitchen").check()
    expect(page.locator(".hit h2", has_text="Harbour")).to_have_count(0)
    assert set(titles(page)) <= {"Bread", "Cake", "Rolls", "Pie"}
    assert asked(page)["is.kind"] == ["kitchen"]
    kind.get_by_label("log").check()  # of one field several values may be chosen
    page.locator(".hit h2", has_text="Harbour").first.wait_for()
    page.get_by_label("Sort by").select_option("year:desc")
    first = page.locator(".hit h2").first
    expect(first).to_have_text("Harbour log 27")
    page.get_by_role("group", name="year").get_by_label("to", exact=True).fill("1995")
    page.keyboard.press("Enter")
    expect(first).to_have_text("Harbour log 5")
    assert asked(page)["to.year"] == ["1995"]
    page.get_by_role("group", name="year").get_by_label("from", exact=True).fill("1990")
    page.keyboard.press("Enter")
    expect(page.locator(".chips a").last).to_have_text("Year 1990 to 1995 ×")
    page.get_by_role("link", name="Remove filter Kind: kitchen").click()
    expect(page.locator(".chips a")).to_have_text(["Kind: log ×", "Year 1990 to 1995 ×"])
    page.get_by_role("button", name="Clear all filters").click()
    expect(first).to_have_text("Harbour log 27")
    assert set(asked(page)) == {"q", "sort"}


def test_results_are_saved_as_a_file_with_the_chosen_columns(page):
    search(page, "harbour")
    page.get_by_text("Download", exact=True).click()
    for name in ("Score", "Snippet"):
        page.get_by_role("group", name="Columns").get_by_label(name, exact=True).uncheck()
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    content = Path(saved.value.path()).read_bytes().decode("utf-8-sig")
    header, *rows = csv.reader(io.StringIO(content, newline=""))
    assert header[:2] == ["id", "title"]
    assert not {"score", "snippet"} & {*header}
    assert len(rows) > 10


def test_a_year_and_its_months_are_chosen_by_one_click(page):
    search(page, "automobile")
    seen = page.get_by_role("group", name="seen")
    seen.get_by_role("link", name="2024").click()
    expect(page.locator(".chips a")).to_have_text("Seen 2024 ×")
    seen.locator("[aria-current=true]", has_text="2024").click()
    expect(page.locator(".chips a")).to_have_count(0)


def test_the_index_chosen_last_opens_again(browser, home):
    shutil.copytree(home / "notes", home / "a-first")
    with OpenIndexes(home) as open_indexes, serving(open_indexes) as served:
        address = f"http://127.0.0.1:{served.address[1]}"
        with watched(browser, address) as page:
            page.goto(address)
            expect(page.get_by_label("Index")).to_have_value("a-first")
            page.get_by_label("Index").select_option("notes")
            page.goto(address)
            expect(page.get_by_label("Index")).to_have_value("notes")


def test_dates_and_numbers_are_written_as_people_do(page, address):
    search(page, "automobile")
    facts = page.locator(".hit", has_text="Failed test").locator(".facts-line")
    expect(facts).to_have_text("Kind workshop Year 2010 Seen 2024-03-01 13:45 UTC")
    search(page, "ferry")
    expect(page.locator(".hit").first.locator(".facts-line")).not_to_contain_text("T00:00")
    # From and to, however few values are left, unless a link has chosen some.
    page.goto(f"{address}/?q=automobile")
    for name, told in (("seen", "2024-03-01 to 2024-03-04"), ("year", "2010 to 2013")):
        group = page.get_by_role("group", name=name)
        expect(group.locator("p")).to_have_text(told)
        expect(group.get_by_role("checkbox")).to_have_count(0)
    page.goto(f"{address}/?q=automobile&is.seen=2024-03-01T13:45:00Z")
    expect(page.get_by_role("group", name="seen").get_by_role("checkbox").first).to_be_checked()
    expect(page.locator(".hit h2")).to_have_text("Failed test")


def test_pages_show_each_result_once(page, address):
    search(page, "harbour")
    shown = titles(page)
    while page.get_by_role("link", name="Next page").count():
        page.get_by_role("link", name="Next page").click()
        expect(page.locator(".hit h2").first).not_to_have_text(shown[-10])
        shown += titles(page)
    assert len(shown) == len(set(shown)) == 29
    page.goto(f"{address}/?q=storm&page=9")
    page.get_by_role("heading", name="No more results").wait_for()
    page.get_by_role("link", name="Back to the first page").click()
    page.locator(".hit").first.wait_for()


def test_a_link_with_an_index_waits_for_no_list(browser, address):
    with watched(browser, address) as page:
        held = []
        page.route("**/indexes", lambda route: held.append(route))
        page.goto(f"{address}/?q=bread&index=notes")
        page.locator(".hit").first.wait_for()
        assert len(held) == 1
        held[0].continue_()
        expect(page.locator("#index option")).to_have_text(["notes"])


def test_the_interpretation_and_corrections_are_shown(page):
    search(page, "automobil")
    search(page, "engnie")
    said = page.locator(".interpretation")
    said.get_by_text("No match for").wait_for()
    assert "showing results for engine" in said.inner_text()
    page.get_by_role("link", name="Search as typed").click()
    page.get_by_role("heading", name="No results").wait_for()
    said.get_by_role("link", name="engine").click()
    page.locator(".hit").first.wait_for()
    search(page, "engnie ferrry")
    assert "showing results for engine, ferry" in said.inner_text()
    page.get_by_role("link", name="Search as typed").click()
    said.get_by_role("link", name="engine ferry").wait_for()
    search(page, "harbour not  storm")
    said.get_by_role("link", name="Exclude the word").click()
    expect(page.locator("#q")).to_have_value("harbour -storm")
    search(page, '+ferry -storm "harbour in"')
    assert 'phrase "harbour in"' in said.inner_text()
    assert "excluded storm" in said.inner_text()
    search(page, "ferr*")
    said.get_by_text("ferr* matches ferry").wait_for()


def test_synonyms_that_were_used_are_shown(page, notes_home):
    index = open_index(notes_home / "notes")
    index.set_synonyms(["boat => ferry"])
    try:
        told = f"{page.url}indexes/notes/synonyms"
        wait_until(lambda: page.request.get(told).json()["synonyms"])
        search(page, "boat")
        page.locator(".interpretation").get_by_text("boat also finds ferry").wait_for()
    finally:
        index.set_synonyms({})
        index.close()
        wait_until(lambda: not page.request.get(told).json()["synonyms"])


def test_without_a_good_match_the_page_says_so(page):
    search(page, "oven submarines of the unheard zebra parliament treaty")
    page.get_by_text("No good match", exact=True).wait_for()
    page.locator(".hit .quality").first.wait_for()
    search(page, "bread dough oven")
    page.get_by_text("Good matches found").wait_for()


def test_without_results_the_page_offers_a_way_on(page, address):
    page.goto(f"{address}/?q=bread&is.kind=log")
    page.get_by_role("heading", name="No results").wait_for()
    page.get_by_role("button", name="Search without filters").click()
    page.locator(".hit h2", has_text="Bread").wait_for()


def test_a_failure_is_shown_and_can_be_retried(browser, address):
    with watched(browser, address, expected=["422", "503", "Failed to load"]) as page:
        page.goto(f"{address}/?q=bread&filter=year+%3E%3E")
        alert = page.get_by_role("alert")
        alert.wait_for()
        assert "filter" in alert.inner_text()
        page.get_by_role("button", name="Search without filters").click()
        page.locator(".hit").first.wait_for()
        page.route("**/indexes/notes/search", lambda route: route.abort())
        page.locator("#q").fill("oven")
        alert.get_by_text("The service does not answer").wait_for()
        page.unroute("**/indexes/notes/search")
        page.get_by_role("button", name="Try again").click()
        page.locator(".hit h2", has_text="Cake").wait_for()


def test_before_the_first_search_there_are_examples(page):
    page.get_by_text("Search 40 documents in notes").wait_for()
    assert "view=map" in page.get_by_role("link", name="Browse the map").get_attribute("href")
    chip = page.locator(".chip").first
    chip.wait_for()
    named = chip.inner_text()
    chip.click()
    page.locator(".hit").first.wait_for()
    assert asked(page)["q"] == [named]


def test_script_stays_text(page, address):
    search(page, "submarines")
    page.locator(".hit").first.wait_for()
    assert f"Submarines {HOSTILE}" in titles(page)
    assert "Document a,b" in titles(page)
    page.get_by_role("group", name="kind").get_by_label(HOSTILE).check()
    page.get_by_role("button", name="Why this? Submarines").click()
    page.locator(".why-body").wait_for()
    page.get_by_role("link", name=f"Submarines {HOSTILE}", exact=True).click()
    page.locator("article h1").wait_for()
    assert page.locator("article h1").inner_text() == f"Submarines {HOSTILE}"
    page.locator("ol.near, .hint").first.wait_for()
    page.goto(f"{address}/?q={'%3Cimg src=x onerror=hacked=1%3E'}&index=notes")
    page.locator(".interpretation").wait_for(state="attached")
    page.locator("#q").fill("submarines <")
    page.wait_for_timeout(300)


def test_nothing_moves_while_somebody_types(page):
    search(page, "ferry")
    page.evaluate(
        """() => {
            window.shifts = [];
            new PerformanceObserver((list) => {
                for (const each of list.getEntries()) {
                    const moved = each.sources.map(({ node }) => node?.outerHTML ?? "");
                    window.shifts.push([each.value, ...moved.map((one) => one.slice(0, 80))]);
                }
            }).observe({ type: "layout-shift" });
        }"""
    )
    places = set()
    for letter in " in storm":
        with page.expect_response(lambda each: each.url.endswith("/search")):
            page.locator("#q").press("Space" if letter == " " else letter)
        shown = page.wait_for_function(
            """() => {
                const parts = ["#q", ".summary", ".results:not([aria-busy]) .hit", "aside"];
                const found = parts.map((each) => document.querySelector(each));
                return found.every(Boolean) && found.flatMap((each) => {
                    const { x, y } = each.getBoundingClientRect();
                    return [Math.round(x), Math.round(y)];
                });
            }"""
        )
        places.add(tuple(shown.json_value()))
    assert len(places) == 1
    page.wait_for_timeout(1000)  # until what is told later is there
    shifts = page.evaluate("shifts")
    # A number more in the time that was taken, and the like; up to .1 is called good.
    assert sum(each[0] for each in shifts) < 0.05, shifts


@pytest.mark.parametrize("width", [320, 390])
def test_a_narrow_window_needs_no_scrolling_aside(browser, address, width):
    with watched(browser, address, viewport={"width": width, "height": 800}) as page:
        for query in ("?q=harbour", "?q=harbour&ranker=compare", "?view=document&id=garage", ""):
            page.goto(f"{address}/{query}")
            page.locator(".hit, .column li, article, .welcome").first.wait_for()
            page.wait_for_timeout(200)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto(f"{address}/?q=harbour")
        page.get_by_text("Filters and ranking").click()
        page.get_by_label("BM25").check()
        page.wait_for_url("**ranker=bm25**")


def test_several_indexes_can_be_chosen_and_none_is_reported(browser, address, tmp_path):
    from klsa_search.service.open_indexes import OpenIndexes
    from tests.service.conftest import build_tiny
    from tests.service.sockets import serving

    with OpenIndexes(tmp_path, interval=0) as open_indexes, serving(open_indexes) as served:
        other = f"http://127.0.0.1:{served.address[1]}"
        with watched(browser, other) as page:
            page.goto(other)
            page.get_by_role("heading", name="No index yet").wait_for()
            build_tiny(tmp_path, "first")
            build_tiny(tmp_path, "second")
            page.goto(f"{other}/?q=wing")
            page.locator(".hit").first.wait_for()
            page.get_by_label("Index").select_option("second")
            page.wait_for_url("**index=second**")
            page.locator(".hit").first.wait_for()


def test_a_passage_of_another_searched_field_is_shown_if_words_are_only_there(browser, tmp_path):
    note = {
        "id": "fan",
        "title": "Fan",
        "text": "It hums.",
        "remedy": "Replace a belt of < 2 mm & hoses.",
    }
    build(
        [note, {"id": "x", "text": "Other."}], name="a", home=tmp_path, search="text,remedy"
    ).close()
    with OpenIndexes(tmp_path) as open_indexes, serving(open_indexes) as served:
        address = f"http://127.0.0.1:{served.address[1]}"
        with watched(browser, address) as page:
            page.goto(address)
            search(page, "belts")
            expect(page.locator(".hit .snippet")).to_have_text(
                ["It hums.", "Remedy Replace a belt of < 2 mm & hoses."]
            )
            assert page.locator(".hit mark").all_inner_texts() == ["belt"]
            search(page, "hums")
            expect(page.locator(".hit .snippet")).to_have_text("It hums.")


def test_a_word_that_is_doubted_can_be_searched_as_typed(browser, tmp_path):
    texts = [f"headphones {number} with a cable" for number in range(1000)]
    build([*texts, "headphnoes of a pilot"], name="a", home=tmp_path).close()
    with OpenIndexes(tmp_path) as open_indexes, serving(open_indexes) as served:
        address = f"http://127.0.0.1:{served.address[1]}"
        with watched(browser, address) as page:
            page.goto(address)
            search(page, "headphnoes")
            said = page.locator(".interpretation")
            said.get_by_text("headphnoes also finds headphones").wait_for()
            said.get_by_role("link", name="Search as typed").click()
            expect(said).to_be_empty()


def test_a_document_that_the_query_names_or_a_rule_pins_is_not_related_to_words(browser, tmp_path):
    texts = {"SUP-7": "a pump leaks", "SUP-8": "see SUP-9", "pinned": "a valve", "b": "a motor"}
    with build(texts, name="a", home=tmp_path) as index:
        pin = {"pin": [{"id": "pinned", "position": 1}]}
        index.set_rules([{"id": "motors", "when": {"query_is": "motor"}, "then": pin}])
    with OpenIndexes(tmp_path) as open_indexes, serving(open_indexes) as served:
        address = f"http://127.0.0.1:{served.address[1]}"
        with watched(browser, address) as page:
            for query, first in (("SUP-7", "SUP-7"), ("motor", "pinned")):
                page.goto(f"{address}/?q={query}&index=a")
                page.locator(f'.hit[data-id="{first}"]').wait_for()
                expect(page.locator(".through")).to_have_count(0)


def test_a_click_lists_all_passages_of_a_document_that_match(browser, tmp_path):
    filler = "Nothing of interest is said on this line of the manual. " * 4
    text = "\n\n".join(
        f"## Part {n}\n\nThe pump {word}. {filler}"
        for n, word in enumerate(("leaks", "hums", "stops"), start=1)
    )
    other = {"id": "other", "title": "Other", "text": "The pump is elsewhere."}
    build(
        [{"id": 'm "1"', "title": "Manual", "text": text}, other],
        name="a",
        home=tmp_path,
        passages=60,
    ).close()
    with OpenIndexes(tmp_path) as open_indexes, serving(open_indexes) as served:
        address = f"http://127.0.0.1:{served.address[1]}"
        with watched(browser, address) as page:
            page.goto(address)
            search(page, "pump hums")
            button = page.get_by_role("button", name="2 more passages of Manual")
            passages = page.locator(".passages li")
            expect(passages).to_have_count(0)
            button.click()
            expect(passages).to_have_count(2)
            assert passages.locator(".place").all_inner_texts() == ["Part 1", "Part 3"]
            assert passages.locator("mark").all_inner_texts() == ["pump", "pump"]
            expect(button).to_have_attribute("aria-expanded", "true")
            button.click()
            expect(page.locator(".passages")).to_be_hidden()


def test_the_page_speaks_the_language_of_its_reader(browser, address):
    with watched(browser, address, locale="de-AT") as page:
        page.goto(f"{address}/?q=harbour&is.kind=log")
        expect(page.locator(".summary")).to_contain_text("Dokumente")
        expect(page.get_by_role("button", name="Alle Filter löschen")).to_be_visible()
        expect(page.get_by_role("combobox", name="Suche")).to_be_visible()
        assert page.locator("html").get_attribute("lang") == "de"
    with watched(browser, address, locale="nl") as page:
        page.goto(f"{address}/?q=harbour")
        expect(page.locator(".summary")).to_contain_text("documents")
