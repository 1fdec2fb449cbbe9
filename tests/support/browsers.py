"""The browser in which the tests open pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Yield a Chromium of this machine or of Playwright; skip the test if there is neither."""
    with sync_playwright() as playwright:
        installed = next(filter(None, map(shutil.which, _COMMANDS)), None)
        downloaded = playwright.chromium.executable_path
        if installed is None and not Path(downloaded).exists():
            pytest.skip("there is no Chromium: apt install chromium (playwright install chromium)")
        sandbox = os.geteuid() != 0  # Chromium has none for root
        browser = playwright.chromium.launch(executable_path=installed, chromium_sandbox=sandbox)
        yield browser
        browser.close()
