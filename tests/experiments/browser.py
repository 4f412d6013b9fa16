"""The system's Chromium without a window, for tests of pages; screenshots are kept if somebody wants them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def why_not() -> str:
    """Why there is no browser; an empty text if there is one."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(missing)} is not installed" if missing else ""


@contextmanager
def open_browser(folder: Path) -> Iterator[Any]:
    """A browser with an empty profile in the folder."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={folder}", "--window-size=1200,1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    try:
        yield browser
    finally:
        browser.quit()


def as_phone(browser: Any, width: int = 390, height: int = 844) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def as_desk(browser: Any) -> None:
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What the condition gives, as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)
    return found


def offers(browser: Any) -> list[str]:
    """What the buttons of all plots say, those that are not shown before the mouse is there as well."""
    code = (
        "return [...document.querySelectorAll('.modebar-btn')].map(b => b.getAttribute('data-title') || '')"
    )
    words: list[str] = browser.execute_script(code)
    return sorted(set(words))


def keep_screenshot(browser: Any, name: str) -> None:
    """A picture of the whole page in the folder FASTLBM_SCREENSHOTS, if there is that."""
    import base64

    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"})
    keep_file(f"{name}.png", base64.b64decode(shot["data"]))


def keep_file(name: str, content: bytes) -> None:
    """A file in the folder FASTLBM_SCREENSHOTS, if there is that."""
    folder = os.environ.get("FASTLBM_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_bytes(content)
