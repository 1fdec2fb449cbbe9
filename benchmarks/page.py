"""What somebody at the search page waits for, in a real browser.

    python -m benchmarks.page HOME NAME QUERIES.tsv [--queries 20] [--letters 24] [--json FILE]

HOME is a home of indexes, NAME one of them; klsa-serve runs in a process of its own, headless
Chromium beside it, on the same processors. Each of some queries is opened in a browser that has
nothing of the page: the time from the start of the navigation until the first hits are on the
screen, and what was transferred. Then the same queries are typed, each letter 150 ms after the
answer to the last: from the key until the answer is on the screen, and how far what stood there
moved (cumulative layout shift, what follows a key included, which browsers leave out).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from benchmarks.service_load import SERVICE, server

PAGE = Path(__file__).parents[1] / "klsa_search" / "service" / "page"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SETTLED = 1000  # ms after which what is told later of hits is there
PATIENCE = 60_000  # ms
PAUSE = 150  # ms between an answer and the next letter
WARMING = 3  # queries before the first that counts

WATCH = """
window.painted = 0; window.shown = 0; window.moved = 0; window.keys = []; window.typed = 0;
addEventListener("keydown", (event) => (window.typed = event.timeStamp), true);
new PerformanceObserver((list) => {
    for (const each of list.getEntries()) window.moved += each.value;
}).observe({ type: "layout-shift", buffered: true });
// What is drawn in a frame is on the screen when a task after it runs.
window.until = (holds) => new Promise((resolve) => {
    const look = () => (holds() ? resolve() : setTimeout(look, 5));
    look();
});
const afterPaint = (work) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = work;
    port2.postMessage(null);
});
new MutationObserver((changes) => {
    const drawn = changes.some(({ target }) => target.id === "results")
        || (!window.shown && document.querySelector(".hit"));
    if (!drawn || !document.querySelector("#results .hit, #results .notice")) return;
    afterPaint(() => {
        window.shown ||= performance.now();
        if (window.typed) window.keys.push(performance.now() - window.typed);
        window.typed = 0;
    });
}).observe(document, { childList: true, subtree: true });
"""


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("name")
    parser.add_argument("queries_file", type=Path, metavar="QUERIES.tsv")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--letters", type=int, default=24, help="of each query that are typed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    lines = options.queries_file.read_text(encoding="utf-8").splitlines()
    queries = [line.partition("\t")[2].lower() for line in lines[: WARMING + options.queries]]
    arguments = ("--home", str(options.home), "--port", "0")
    with server(SERVICE, *arguments) as address, sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, BROWSERS)), None)
        sandbox = os.geteuid() != 0  # which Chromium has none for root
        browser = playwright.chromium.launch(executable_path=found, chromium_sandbox=sandbox)
        site = f"http://{address.host}:{address.port}/?index={quote_plus(options.name)}"
        for query in queries[:WARMING]:
            opened(browser, f"{site}&q={quote_plus(query)}")
        counted = queries[WARMING:]
        visits = [opened(browser, f"{site}&q={quote_plus(query)}") for query in counted]
        keys, moved = typed(browser, site, counted, options.letters)
        browser.close()
    first = [visit["ms"] for visit in visits]
    figures = {
        "first_hits_ms": spread(first),
        "key_to_answer_ms": spread(keys),
        "layout_shift": {"median": float(np.median(moved)), "most": max(moved)},
        "visit_kb": max(visit["bytes"] for visit in visits) / 1000,
        "all_files_kb": sum(each.stat().st_size for each in PAGE.rglob("*.*")) / 1000,
    }
    report(figures, len(visits), len(keys))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


def opened(browser: Browser, address: str) -> dict[str, float]:
    """Open an address with nothing kept: ms until its hits are there, bytes of all that came."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    context.add_init_script(WATCH)
    page = context.new_page()
    transferred: list[int] = []
    page.on("requestfinished", lambda each: transferred.append(received(each)))
    page.goto(address)
    page.evaluate("until(() => window.shown)")
    found = {"ms": float(page.evaluate("window.shown"))}
    page.wait_for_timeout(SETTLED)
    context.close()
    return found | {"bytes": float(sum(transferred))}


def received(request: Any) -> int:
    sizes = request.sizes()
    return int(sizes["responseBodySize"] + sizes["responseHeadersSize"])


def typed(
    browser: Browser, site: str, queries: list[str], letters: int
) -> tuple[list[float], list[float]]:
    """Type queries: ms from each key until its answer is there, and the shift of each query."""
    keys: list[float] = []
    moved: list[float] = []
    for query in queries:
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        context.add_init_script(WATCH)
        page = context.new_page()
        page.goto(site)
        page.locator(".welcome").wait_for()
        page.locator("#q").focus()
        page.keyboard.type(query[0])  # from the start to results everything is another
        page.evaluate("until(() => keys.length === 1)")
        page.evaluate("(window.keys = [], window.moved = 0)")
        for at, letter in enumerate(query[1:letters]):
            page.keyboard.type(letter)
            page.evaluate("(count) => until(() => keys.length === count)", at + 1)
            page.wait_for_timeout(PAUSE)
        page.wait_for_timeout(SETTLED)
        keys += page.evaluate("window.keys")
        moved.append(float(page.evaluate("window.moved")))
        context.close()
    return keys, moved


def spread(values: list[float]) -> dict[str, float]:
    """Median, 95 of 100, and the most."""
    return {
        "median": float(np.median(values)),
        "p95": float(np.percentile(values, 95)),
        "most": max(values),
    }


def report(figures: dict[str, Any], visits: int, keys: int) -> None:
    for name, label, count in (
        ("first_hits_ms", "first paint with hits, nothing kept", visits),
        ("key_to_answer_ms", "from a key to its answer", keys),
    ):
        told = ", ".join(f"{kind} {value:.0f} ms" for kind, value in figures[name].items())
        print(f"{label}: {told} ({count})")
    moved = ", ".join(f"{kind} {value:.4f}" for kind, value in figures["layout_shift"].items())
    print(f"layout shift while a query is typed: {moved}")
    print(f"a visit: {figures['visit_kb']:.0f} kB; all files: {figures['all_files_kb']:.0f} kB")


if __name__ == "__main__":
    main()
