"""A real browser for pages: Chromium, driven by Playwright; skipped with the reason elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["BROWSERS", "chromium", "new_page"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LIMIT = 600_000
"""Milliseconds that are only exceeded where something hangs."""


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"], timeout=LIMIT
        )
        yield browser
        browser.close()


def new_page(browser: Any, **options: Any) -> Any:
    """Open a page that waits as long as a busy machine takes."""
    page = browser.new_page(**options)
    page.set_default_timeout(LIMIT)
    return page
