"""A headless browser for tests and screenshots."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

_FIND = Path(__file__).parents[2] / "scripts" / "ensure-chromium"
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
_IS_DRAWN = """() => {
    const document = (window.Bokeh?.documents ?? [])[0];
    return document && document.is_idle && document.get_model_by_name("bars_data_0") !== null;
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium of the system; as root, install Debian's first if there is none."""
    found = subprocess.run([_FIND], capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(found.stderr.strip())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found.stdout.strip(), args=_ARGUMENTS)
        yield browser
        browser.close()


def opened(page: Page, url: str) -> Page:
    """Open a page of the dashboard, and wait until it is drawn."""
    page.set_default_timeout(120_000)  # a busy machine is slow
    page.goto(url)
    page.wait_for_function(_IS_DRAWN)
    return page


def model(page: Page, name: str, field: str) -> object:
    """Return a field of a model on the page, by the model's name."""
    return page.evaluate(
        "([name, field]) => Bokeh.documents[0].get_model_by_name(name)[field]", [name, field]
    )


def column(page: Page, source: str, name: str) -> list[object]:
    """Return a column of a data source on the page."""
    found = page.evaluate(
        "([name, c]) => Array.from(Bokeh.documents[0].get_model_by_name(name).data[c])",
        [source, name],
    )
    assert isinstance(found, list)
    return found
