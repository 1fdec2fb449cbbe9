"""The browser in which the tests open pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Yield a Chromium of this machine or of Playwright; skip the test if there is neither."""
    from playwright.sync_api import sync_playwright  # 0.4 s, when its modules are collected

    with sync_playwright() as playwright:
        installed = next(filter(None, map(shutil.which, _COMMANDS)), None)
        downloaded = playwright.chromium.executable_path
        if installed is None and not Path(downloaded).exists():
            pytest.skip("there is no Chromium: apt install chromium (playwright install chromium)")
        sandbox = os.geteuid() != 0  # Chromium has none for root
        browser = playwright.chromium.launch(executable_path=installed, chromium_sandbox=sandbox)
        yield browser
        browser.close()
