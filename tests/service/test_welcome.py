"""GET /: the search page for browsers, JSON for programs."""

import re

import pytest

from klsa_search.errors import SettingsError
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.middleware.clients import Rates
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.page_files import PREFIX, SearchPage, prefers_html
from tests.conftest import ROOT
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
HTML = {"Accept": BROWSER}
PAGE = ROOT / "klsa_search" / "service" / "page"
FILES = {
    path.relative_to(PAGE).as_posix(): path.read_bytes()
    for path in sorted(PAGE.rglob("*"))
    if path.is_file()
}
KILOBYTES = 260


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        (BROWSER, True),
        ("text/html", True),
        ("TEXT/HTML; q=0.5, application/json;q=0.4", True),
        ("application/json;q=0.5, text/html;q=0.5", False),
        ("*/*", False),
        ("", False),
        ("application/json", False),
        ("text/html;q=0", False),
        ("text/html;q=nonsense", True),
        ("text/*", False),
    ],
)
def test_browsers_get_the_page(client, accept, html):
    assert prefers_html(accept) == html
    answer = client.get("/", headers={"Accept": accept})
    assert answer.headers["content-type"].startswith("text/html" if html else "application/json")
    assert answer.headers["vary"] == "Accept"


def test_its_headers_let_nothing_in_from_elsewhere(client):
    for path in ("/", PREFIX + next(iter(FILES))):
        answer = client.get(path, headers=HTML)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-cache"
        kept = client.get(path, headers={**HTML, "If-None-Match": answer.headers["etag"]})
        assert (kept.status_code, kept.content) == (304, b"")
        assert kept.headers["etag"] == answer.headers["etag"]
        head = client.head(path, headers=HTML)
        assert (head.content, head.headers["etag"]) == (b"", answer.headers["etag"])
        assert head.headers["content-length"] == answer.headers["content-length"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("klsa.js", "text/javascript"),
        ("klsa.d.ts", "application/typescript"),
        ("style.css", "text/css"),
    ],
)
def test_content_types_are_the_same_on_every_machine(client, name, kind):
    assert client.get(PREFIX + name).headers["content-type"] == f"{kind}; charset=utf-8"


@pytest.mark.parametrize("path", ["nope.js", "", "../welcome.py", "%2e%2e/welcome.py", "views/"])
def test_nothing_else_is_handed_out(client, path):
    assert client.get(PREFIX + path).status_code == 404


def test_the_page_is_light_and_whole():
    sizes = {name: len(content) for name, content in FILES.items()}
    words = [size for name, size in sizes.items() if name.startswith("words/")]  # one is loaded
    assert sum(sizes.values()) - sum(words) + max(words) <= KILOBYTES * 1000
    texts = {name: content.decode() for name, content in FILES.items()}
    for name, text in texts.items():
        hosts = set(re.findall(r"https?://[\w.-]+", text)) - {"http://www.w3.org"}
        assert not hosts, name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
    for link in re.findall(r'(?:src|href)="page/([^"#]+)', texts["index.html"]):
        assert link in texts
    assert not re.search(r"<script(?![^>]*src)|<style|\son\w+=|style=", texts["index.html"])
    for name, text in texts.items():
        if name.endswith(".js"):
            folder = name.rpartition("/")[0]
            for link in re.findall(r'(?:from |import\()"(\.[^"]+)"', text):
                place = f"{folder}/{link}" if folder else link
                place = re.sub(r"[^/]+/\.\./|\./", "", place)
                assert place in texts, (name, link)


def test_the_page_has_the_logo_title_and_index_of_the_operator(tiny_home, tmp_path):
    logo = tmp_path / "logo.PNG"
    logo.write_bytes(b"an image")
    page = {"title": "Our <help>", "logo": logo, "front_index": "tiny"}
    with OpenIndexes(tiny_home) as open_indexes:
        client = AppClient(app_of_indexes(open_indexes, page=page))
        start = client.get("/", headers=HTML).text
        assert '<html lang="en" data-index="tiny">' in start
        assert "<title>Our &lt;help&gt;</title>" in start
        assert start.count("page/logo") == 2
        assert "icon.svg" not in start
        image = client.get("/page/logo")
        assert (image.content, image.headers["content-type"]) == (b"an image", "image/png")
        assert image.headers["content-security-policy"].startswith("default-src 'self';")


def test_a_logo_of_another_format_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"logo = `.*logo\.gif`.*convert the image"):
        SearchPage("Help", logo=tmp_path / "logo.gif")


def test_the_page_needs_no_key_and_no_token(tiny_home, tmp_path):
    file = tmp_path / "keys.json"
    add_key(file, "web", ["search"])
    with OpenIndexes(tiny_home) as open_indexes:
        client = AppClient(app_of_indexes(open_indexes, keys=Keys(file, set()), rates=Rates(1)))
        for name in FILES:
            assert client.get(PREFIX + name).status_code == 200
        assert client.get("/", headers=HTML).status_code == 200
        assert client.get("/indexes").status_code == 401


def test_the_page_counts_as_one_route(client):
    counted = f'klsa_requests_total{{method="GET",route="{PREFIX}{{file}}",status="200"}}'

    def count():
        lines = client.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(counted))

    before = count()
    for name in FILES:
        client.get(PREFIX + name)
    assert count() - before == len(FILES)
