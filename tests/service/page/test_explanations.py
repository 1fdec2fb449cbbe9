"""Explanations of hits, ranking parameters, comparison of rankings, single documents."""

import pytest
from playwright import sync_api as api

from .conftest import until, watched

pytestmark = pytest.mark.browser

expect = api.expect


@pytest.fixture
def found(page, address):
    """The page with the answer to a query that one hit holds no word of."""
    page.goto(f"{address}/?q=car&index=notes")
    page.locator(".hit").first.wait_for()
    return page


def hit(page, id_):
    return page.locator(f'.hit[data-id="{id_}"]')


def asked_for(response, setting):
    """Whether it answers a search by another value of a setting."""
    asked = response.request.post_data_json if response.request.method == "POST" else {}
    return response.url.endswith("/search") and setting in asked


def order(page):
    return [each.get_attribute("data-id") for each in page.locator(".hit").all()]


def test_a_hit_without_a_word_says_so(found):
    expect(hit(found, "garage").locator(".through")).to_contain_text("Contains none of your words")
    assert hit(found, "mot").locator(".through").count() == 0
    expect(hit(found, "mot").locator(".quality")).to_be_visible()


def test_each_search_is_sent_once_and_explained_on_request(page, address):
    sent = []
    page.on("request", lambda each: sent.append(each) if each.url.endswith("/search") else None)
    page.goto(f"{address}/?q=car&index=notes")
    page.locator(".verdict").wait_for()
    page.wait_for_timeout(1000)  # three times as long as a query must stand to count
    (search,) = [each.post_data_json for each in sent]
    assert (search["quality"], search["analytics"]) == (True, "typing")
    assert "explain" not in search
    hit(page, "garage").get_by_role("button", name="Why this?").click()
    hit(page, "garage").locator(".why-body").wait_for()
    _, explained = [each.post_data_json for each in sent]
    assert [explained[name] for name in ("explain", "k", "analytics")] == [True, 1, False]


def test_a_hit_opens_to_its_parts(found):
    garage = hit(found, "garage")
    garage.get_by_role("button", name="Why this?").click()
    panel = garage.locator(".why-body")
    expect(panel.locator("dt")).to_have_text(["Words", "Coverage", "Topic", "Similar documents"])
    expect(panel).to_contain_text("It contains none of the words of the query (car)")
    expect(panel.get_by_role("link", name="For sale").first).to_be_visible()
    assert "Score: " in panel.get_by_role("img").get_attribute("aria-label")
    mot = hit(found, "mot")
    mot.get_by_role("button", name="Why this?").click()
    expect(mot.locator(".why-body .weighed .word")).to_have_text(["car"])
    garage.get_by_role("button", name="Why this?").click()
    expect(panel).to_be_hidden()


def test_sliders_and_the_switch_rank_again(found):
    assert "garage" in order(found)
    found.get_by_text("Advanced", exact=True).click()
    alpha = found.get_by_role("slider", name="Related words")
    assert alpha.input_value() == "0.7"
    with found.expect_response(lambda each: each.url.endswith("/search")):
        alpha.fill("0")
    expect(hit(found, "garage")).to_have_count(0)
    assert "alpha=0" in found.url
    found.get_by_role("button", name="Reset").click()
    expect(hit(found, "garage")).to_have_count(1)
    assert "alpha" not in found.url
    for name, value in (("Seeds", "1"), ("Focus", "1")):
        setting = {"Seeds": "z"}.get(name, "sharpness")
        with found.expect_response(lambda each, of=setting: asked_for(each, of)) as told:
            found.get_by_label(name).fill(value)
        assert told.value.json()["parameters"][setting] == 1
    found.get_by_label("BM25").check()
    expect(hit(found, "garage")).to_have_count(0)
    assert found.get_by_role("slider", name="Related words").is_disabled()
    found.get_by_label("Kernel LSA").check()
    expect(hit(found, "garage")).to_have_count(1)


def test_side_by_side(found):
    found.get_by_label("Side by side").check()
    before = found.locator("section.column").first
    after = found.locator("section.column").last
    expect(before.locator("li")).to_have_count(2)
    garage = after.locator('li[data-id="garage"]')
    expect(garage).to_have_attribute("data-kind", "new")
    expect(garage.locator(".unseen")).to_have_text("not among the first 100 of BM25")
    expect(garage.locator(".named p")).to_contain_text("found through")
    expect(after.locator('li[data-id="mot"] .named p')).to_have_count(0)
    expect(found.locator("svg.lines path")).to_have_count(2)
    mot = after.locator('li[data-id="mot"]')
    mot.hover()
    expect(found.locator("svg.lines path.lit")).to_have_count(1)
    expect(found.locator(".comparison > p")).to_contain_text("not among the first 10 by words only")
    ends = """() => {
            const lines = document.querySelector("svg.lines");
            const box = lines.getBoundingClientRect();
            return [...lines.children].map((path) => {
                const [from, to] = [0, path.getTotalLength()]
                    .map((at) => path.getPointAtLength(at));
                const middle = (side) => {
                    const row = document.querySelector(
                        `section.column:${side}-of-type li[data-id="${path.dataset.id}"]`);
                    const place = row.getBoundingClientRect();
                    return place.top + place.height / 2 - box.top;
                };
                return [from.y - middle("first"), to.y - middle("last")];
            });
        }"""
    # Drawn once more in the frame after what is told of the rows.
    until(found, lambda: all(abs(each) < 1 for pair in found.evaluate(ends) for each in pair))


def test_positive_examples_change_the_ranking(page, address):
    page.goto(f"{address}/?q=oven&index=notes")
    page.locator(".hit").first.wait_for()
    before = order(page)
    last = [each for each in before if each in ("bread", "cake", "rolls", "pie")][-1]
    hit(page, last).get_by_role("button", name="More hits like").click()
    expect(page.locator(".interpretation")).to_contain_text("More like")
    expect(page.locator(".hit").first).to_have_attribute("data-id", last)
    positive = hit(page, last).get_by_role("button", name="More hits like")
    expect(positive).to_have_attribute("aria-pressed", "true")
    hit(page, last).get_by_role("button", name="Fewer hits like").click()
    expect(page.locator(".interpretation")).to_contain_text("Less like")
    expect(page.locator(".hit").first).not_to_have_attribute("data-id", last)
    hit(page, "cake").get_by_role("button", name="Why this?").click()
    expect(hit(page, "cake").locator(".why")).to_contain_text("before your feedback")
    page.get_by_role("link", name="Undo").click()
    expect(page.locator(".interpretation")).not_to_contain_text("like")
    expect(page.locator(".hit").first).to_have_attribute("data-id", before[0])


def test_more_like_this_and_the_page_of_a_document(found):
    hit(found, "sale").get_by_role("link", name="Documents similar to For sale").click()
    expect(found.get_by_role("heading", level=1)).to_have_text("For sale")
    expect(found.locator("article .text")).to_contain_text("automobile engine rebuilt")
    expect(found.locator("dl.facts")).to_contain_text("workshop")
    near = found.locator("ol.near li a")
    expect(near.filter(has_text="From the garage")).to_have_count(1)
    found.get_by_role("button", name="Same words").click()
    expect(found.get_by_role("button", name="Same words")).to_have_attribute("aria-pressed", "true")
    expect(near.filter(has_text="From the garage")).to_have_count(1)
    expect(found.get_by_role("heading", name="Why it matches “car”")).to_be_visible()
    near.filter(has_text="From the garage").click()
    expect(found.get_by_role("heading", level=1)).to_have_text("From the garage")
    word = found.locator("ol.weighed a", has_text="rebuilt").first
    expect(word).to_be_visible()
    found.go_back()
    expect(found.get_by_role("heading", level=1)).to_have_text("For sale")
    found.get_by_role("link", name="Results for “car”").click()
    expect(hit(found, "sale")).to_have_count(1)
    found.go_back()
    found.locator("ol.weighed a", has_text="brakes").first.click()
    found.locator(".hit").first.wait_for()
    assert found.locator("#q").input_value() == "brakes"


def test_a_document_that_is_not_there(browser, address):
    with watched(browser, address, expected=["404"]) as page:
        page.goto(f"{address}/?view=document&id=nope&index=notes")
        expect(page.get_by_role("alert")).to_contain_text("The document was deleted")
        page.get_by_role("link", name="← Search").click()
        page.locator(".welcome").wait_for()


def test_a_search_begun_on_a_document_leads_to_the_results(page, address):
    page.goto(f"{address}/?view=document&id=rose&index=notes")
    expect(page.get_by_role("heading", level=1)).to_have_text("Roses")
    page.locator("#q").fill("oven")
    expect(page.get_by_role("heading", level=1)).to_have_text("Roses")
    page.locator("#q").press("Enter")
    page.locator(".hit").first.wait_for()
