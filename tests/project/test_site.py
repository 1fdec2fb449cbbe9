"""Links between pages work on GitHub and on the site."""

import importlib.util
import re
from functools import cache

from markdown_it import MarkdownIt

from tests.conftest import ROOT
from tools import public_api

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "index" / "README.md"])
DOCS = ROOT / "docs"
GUIDES = sorted((DOCS / "guides").glob("*.md"))
NEXT = re.compile(r"Next: \[[^]]+\]\([\w./#-]+\)(, \[[^]]+\]\([\w./#-]+\))*\.")
NAVIGATION = (DOCS / "index.rst").read_text(encoding="utf-8")


@cache
def parsed(page):
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def targets(page):
    """Where links and pictures of a page lead."""
    for block in parsed(page):
        for token in block.children or ():
            target = token.attrs.get("href") or token.attrs.get("src")
            if target is not None and not re.match("https?:|mailto:", target):
                yield target


@cache
def anchors(page):
    """Those of its headings, as GitHub and the site give them."""
    found = {}
    for opening, heading in zip(parsed(page), parsed(page)[1:], strict=False):
        if opening.type == "heading_open":
            text = "".join(token.content for token in heading.children)
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found[slug] = found.get(slug, -1) + 1
    return {
        name if not n else f"{name}-{n}" for name, last in found.items() for n in range(last + 1)
    }


def broken_links(page):
    for target in targets(page):
        name, _, anchor = target.partition("#")
        led = (page.parent / name).resolve() if name else page
        if not led.is_file() or (anchor and anchor not in anchors(led)):
            yield target
    for name in re.findall(r"\bdocs/[\w/-]+\.(?:md|rst)\b", page.read_text(encoding="utf-8")):
        if not (ROOT / name).is_file():
            yield name


def test_links_of_all_pages_lead_somewhere():
    broken = {str(page.relative_to(ROOT)): [*broken_links(page)] for page in PAGES}
    assert {page: links for page, links in broken.items() if links} == {}


def test_the_site_leads_to_every_page():
    led = set(re.findall(r"^   (?:.*<)?([\w/-]+)>?$", NAVIGATION, re.MULTILINE))
    pages = {page.relative_to(DOCS) for page in PAGES if page.is_relative_to(DOCS)}
    assert {page.with_suffix("").as_posix() for page in pages} - {"README"} <= led


def test_every_guide_ends_with_the_next_ones():
    last = {path.name: path.read_text("utf-8").splitlines()[-1] for path in GUIDES}
    assert [name for name, line in last.items() if not NEXT.fullmatch(line)] == []


def test_the_site_has_every_public_package():
    shown = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.rst"))
    assert set(re.findall(r"automodule:: ([\w.]+)", shown)) == set(public_api.PACKAGES)
    for name in public_api.PACKAGES["klsa_search.analysis"]:
        assert name in shown


DOCSTRING = """\
Find what is near; see docs/quickstart.md.

k  how many, of *all* |
   or fewer
with_room one blank, and a line
          that goes on
Only those of `index`.

    k = 2

>>> 1 + 1
2
"""
RESTRUCTURED = """\
Find what is near; see :doc:`/quickstart`.

``k``
    how many, of \\*all\\* \\|
    or fewer

``with_room``
    one blank, and a line
    that goes on

Only those of `index`.

::

        k = 2

>>> 1 + 1
2
"""


def test_the_site_reads_docstrings_as_they_are_written():
    path = ROOT / "docs" / "site" / "docstrings.py"
    spec = importlib.util.spec_from_file_location("docstrings", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = "\n".join(module.restructured(DOCSTRING.splitlines()))
    assert re.sub("\n{3,}", "\n\n", made) == RESTRUCTURED
