"""Administration in the browser: documents, settings, rebuilds."""

import json

import pytest
from playwright import sync_api as api

from klsa_search import open_index
from klsa_search.service.keys import add_key, read_keys

from .conftest import watched
from .notes import HOSTILE
from .writable_service import SIZES, give_key, serious, writable

expect = api.expect

pytestmark = pytest.mark.browser

LINES = [
    {"id": "lamp", "title": "Lamp", "text": "A lamp of brass."},
    {"id": "no text at all", "title": 3},
    {"title": "Without an id"},
    {"id": "shelf", "text": f"A shelf. {HOSTILE}"},
]
TABLE = 'Key;Headline;Body;Colour\nt1;Table;"A table; round, of ""oak""";brown\nt2;Chair\n'


@pytest.fixture
def admin(browser, home):
    with writable(home) as address, watched(browser, address) as page:
        page.goto(f"{address}/?view=admin")
        page.get_by_role("heading", name="Statistics").wait_for()
        yield page


def drop(page, *files):
    """Choose files by name and content, and wait until they have been looked at."""
    page.locator("#files").set_input_files(
        [
            {"name": name, "mimeType": "text/plain", "buffer": content.encode()}
            for name, content in files
        ]
    )


def fact(page, name):
    return page.locator(f"dl.figures dt:text-is('{name}') + dd").inner_text()


def shows(page, name, value):
    """Wait until a fact has that value."""
    page.locator(f"dl.figures dt:text-is('{name}') + dd:text-is('{value}')").wait_for()


def documents(home):
    index = open_index(home / "notes")
    found = {id_: index.document(id_) for id_ in index.ids()}
    index.close()
    return found


def test_names_of_views_are_not_divided(admin):
    for width in (390, 961, 1280):
        admin.set_viewport_size({"width": width, "height": 900})
        lines = admin.locator("#views a").evaluate_all(
            "links => links.map((link) => {"
            " const range = document.createRange(); range.selectNodeContents(link);"
            " return new Set([...range.getClientRects()].map(({ top }) => top)).size; })"
        )
        assert lines == [1] * 5, width


def test_facts_and_spectrum(admin):
    page = admin
    assert fact(page, "Documents") == "40"
    assert fact(page, "On disk").endswith("KiB")
    assert "000001" in fact(page, "Generation")
    assert fact(page, "Segments") == "1 (build)"
    assert page.locator(".plots polyline").count() == 2
    points = page.locator(".plots polyline").first.get_attribute("points").split()
    assert len(points) == int(fact(page, "Eigenvectors"))
    assert "0.0% changed" in page.locator(".sheet", has_text="Drift").inner_text()
    assert serious(page) == []
    for options in SIZES.values():
        page.set_viewport_size(options["viewport"])
        page.emulate_media(color_scheme=options.get("color_scheme", "light"))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_lines_of_json_are_added_and_bad_ones_reported(admin, home):
    page = admin
    content = "\n".join(json.dumps(line) for line in LINES) + "\n\n{broken\n"
    drop(page, ("new.jsonl", content))
    page.get_by_role("button", name="Add new.jsonl").click()
    page.get_by_text("The file was read completely").wait_for()
    told = page.locator(".sheet", has_text="Add documents").inner_text()
    assert "3 documents added, 2 refused" in told
    faults = page.locator(".faults li").all_inner_texts()
    assert [each[:12] for each in faults] == ["new.jsonl:3:", "new.jsonl:6:"]
    shows(page, "Documents", "43")
    assert "3 documents added" in page.locator(".sheet", has_text="Drift").inner_text()
    assert documents(home)["shelf"].text == LINES[3]["text"]


def test_columns_of_a_table_are_mapped(admin, home):
    page = admin
    drop(page, ("stock.csv", TABLE))
    assert page.get_by_label("Id", exact=True).input_value() == "Key"
    assert page.get_by_label("Title", exact=True).input_value() == "Headline"
    page.get_by_label("Title", exact=True).select_option("Colour")
    page.get_by_text("read as CSV with delimiter ';'", exact=False).wait_for()
    expect(page.locator(".sample td").nth(1)).to_have_text("brown")
    assert serious(page) == []
    page.get_by_role("button", name="Add stock.csv").click()
    page.get_by_text("1 document added, 1 refused").wait_for()
    fault = page.locator(".faults li").inner_text()
    assert fault.startswith("stock.csv:3: ")
    found = documents(home)["t1"]
    assert (found.title, found.text) == ("brown", 'A table; round, of "oak"')
    assert found.metadata == {"Headline": "Table"}


def test_texts_are_documents_beside_many_lines(admin, home):
    page = admin
    many = "\n".join(json.dumps({"id": f"many {n}", "text": f"word {n}"}) for n in range(450))
    drop(page, ("a note.txt", "The file\n\nis one document."), ("many.jsonl", many))
    page.get_by_role("button", name="Add 2 files").click()
    page.get_by_text("451 documents added. The file").wait_for()
    found = documents(home)
    assert found["a note.txt"].title == "a note"
    assert found["a note.txt"].text == "The file\n\nis one document."
    assert found["many 449"].text == "word 449"


def test_the_beginning_of_a_large_file_is_shown(admin):
    page = admin
    row = f"<row><id>r</id><title>Row</title><text>{'word ' * 9_999}</text></row>"
    drop(page, ("rows.xml", f"<?xml version='1.0'?><rows>{row * 30}</rows>"))
    expect(page.locator(".sample td").nth(1)).to_have_text("Row")
    items = [{"id": str(n), "title": "Item", "text": "word " * 9_999} for n in range(30)]
    drop(page, ("items.json", json.dumps({"items": items}, indent=1)))
    expect(page.locator(".file .trouble")).to_contain_text("All of it is read when it is added")


def test_why_a_file_has_no_documents_is_shown(admin):
    page = admin
    drop(page, ("lines.jsonl", '{"id": "1" "title": "x"}\n'))
    expect(page.locator(".file .trouble")).to_contain_text("invalid JSON")


def test_columns_that_are_chosen_quickly_are_all_used(admin):
    page = admin
    drop(page, ("two.csv", "id,name,subject,body\n1,a,b,c\n"))
    page.get_by_text("could each be the title").wait_for()
    waiting = []
    page.route("**/files/**", lambda route: waiting.append(route))
    page.get_by_label("Title", exact=True).select_option("subject")
    page.get_by_label("Text", exact=True).select_option("body")
    while len(waiting) < 2:
        page.wait_for_timeout(20)
    for route in reversed(waiting):
        route.continue_()
    expect(page.locator(".sample td").nth(1)).to_have_text("b")
    expect(page.locator(".sample td").nth(2)).to_have_text("c")
    assert page.get_by_label("Title", exact=True).input_value() == "subject"
    assert page.get_by_label("Id", exact=True).locator("option").all_inner_texts() == [
        "the number of its row", "id", "name", "subject", "body"
    ]  # fmt: skip
    page.unroute("**/files/**")
    page.get_by_label("Id", exact=True).select_option("the number of its row")
    expect(page.locator(".sample td").first).to_have_text("two.csv#1")


def test_unreadable_files_are_reported(browser, home):
    with writable(home) as address, watched(browser, address, expected=("422",)) as page:
        page.goto(f"{address}/?view=admin")
        drop(page, ("binary.pdf", "%PDF-1.4 cut short"), ("note.txt", "A note."))
        page.get_by_role("button", name="Add 2 files").click()
        page.get_by_text("1 document added, 1 refused. The file was read completely").wait_for()
        assert page.locator(".faults li").inner_text().startswith("binary.pdf:1: ")
        drop(page, ("photo.jpg", "\0\0\0"))
        page.get_by_role("button", name="Add photo.jpg").click()
        page.get_by_text("0 documents added, 1 refused. The file below was not read").wait_for()
        assert page.locator(".faults li").inner_text().startswith("photo.jpg: ")


def test_a_proxy_may_refuse_large_files(browser, home):
    with writable(home) as address, watched(browser, address, expected=("413",)) as page:
        page.goto(f"{address}/?view=admin")
        page.route("**/files/large.txt", lambda route: route.fulfill(status=413, body="<html>"))
        drop(page, ("large.txt", "A text."), ("note.txt", "A note."))
        page.get_by_role("button", name="Add 2 files").click()
        page.get_by_text("1 document added, 1 refused. The file").wait_for()
        assert "than the proxy" in page.locator(".faults li").inner_text()


def test_an_upload_is_stopped(admin, home):
    page = admin
    page.route("**/files/**", lambda _: None)  # is never answered
    drop(page, ("a note.txt", "A note."))
    page.get_by_role("button", name="Add a note.txt").click()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("0 documents added. Stopped; added documents are kept.").wait_for()
    assert "a note.txt" not in documents(home)


def test_documents_are_deleted_once_that_is_confirmed(admin, home):
    page = admin
    page.get_by_label("Document IDs, one per line").fill("bread\nnobody\nbread")
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("button", name="Cancel").click()
    assert "bread" in documents(home)
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("button", name="Permanently delete 2 documents").click()
    page.get_by_text("1 document deleted; 1 ID not found: nobody.").wait_for()
    assert "bread" not in documents(home)
    shows(page, "Documents", "39")


def test_settings_are_tried_and_kept(admin, home):
    page = admin
    page.get_by_label("Queries to preview, one per line").fill("automobile\nspring")
    page.locator(".trials .trial").nth(1).wait_for()
    keep = page.get_by_role("button", name="Save these settings")
    assert keep.is_disabled()
    page.get_by_label("Related words (alpha)").fill("0")
    page.get_by_label("coverage").fill("0")
    page.get_by_label("latent").fill("0")
    page.locator(".knob output", has_text="0.7 → 0").wait_for()
    page.locator(".trials .shift").first.wait_for()
    page.get_by_role("button", name="Reset").click()
    assert keep.is_disabled()
    page.get_by_label("Seeds (z)").fill("7")
    keep.click()
    page.get_by_text("The settings are in effect.").wait_for()
    page.locator(".knob output", has_text="7").first.wait_for()
    index = open_index(home / "notes")
    assert (index.settings.z, index.generation) == (7, "000001")
    index.close()


def test_a_refit_is_cancelled(browser, home, monkeypatch):
    monkeypatch.setattr("klsa_search.service.jobs.INTERVAL", 3600)  # so that it waits
    with writable(home) as address, watched(browser, address) as page:
        page.goto(f"{address}/?view=admin")
        cancel = page.get_by_role("button", name="Cancel")
        api.expect(page.get_by_role("button", name="Refit now")).to_be_enabled()
        api.expect(cancel).to_be_hidden()
        page.get_by_role("button", name="Refit now").click()
        cancel.click()
        page.get_by_text("The refit was cancelled").wait_for()
        api.expect(cancel).to_be_hidden()


def test_nothing_is_shown_without_a_key_that_may_write(browser, home, tmp_path):
    file = tmp_path / "keys.json"
    reader = add_key(file, "reader", ["search"])
    writer = add_key(file, "writer", ["search", "write"])
    with (
        writable(home, file) as address,
        watched(browser, address, expected=("401", "403")) as page,
    ):
        told = []
        page.on("response", lambda each: told.append((each.status, each.url)))
        page.goto(f"{address}/?view=admin")
        page.get_by_role("dialog").wait_for()
        assert page.locator("main").inner_text() == ""
        give_key(page, reader)
        page.get_by_role("heading", name="Not allowed").wait_for()
        assert serious(page) == []
        assert page.locator(".sheet").count() == 0
        assert not [url for status, url in told if "/indexes/notes" in url and status == 200]
        page.get_by_role("button", name="Sign in as another user").click()
        give_key(page, writer)
        page.get_by_role("heading", name="Statistics").wait_for()
        assert fact(page, "Documents") == "40"


def test_an_administrator_adds_and_deletes_users(browser, home, tmp_path):
    file = tmp_path / "keys.json"
    password = add_key(file, "chief", ["search", "write", "metrics", "users"], is_user=True)
    with (
        writable(home, file) as address,
        watched(browser, address, expected=("401", "400")) as page,
    ):
        page.goto(f"{address}/?view=admin")
        give_key(page, password, "chief")
        users = page.get_by_role("region", name="Users")
        users.get_by_label("Name").fill("anna")
        users.get_by_label("Role").select_option("editor")
        users.get_by_role("button", name="Add").click()
        shown = users.locator("code").inner_text()
        assert len(shown) == 23
        expect(users.locator(".users li")).to_have_count(2)
        expect(users.locator(".users li").first).to_contain_text("annaeditor")
        assert serious(page) == []
        users.get_by_role("button", name="Delete anna").click()
        users.locator("button.danger").click()
        expect(users.locator(".users li")).to_have_count(1)
    assert [key.name for key in read_keys(file)] == ["chief"]


def test_a_service_that_takes_no_writes_says_so(browser, address):
    with watched(browser, address, expected=("403",)) as page:
        page.goto(f"{address}/?view=admin")
        page.get_by_role("heading", name="Changes are not allowed").wait_for()
        assert "start klsa-serve without --read-only" in page.locator("main").inner_text()
