"""The page in a real browser."""

import pytest

from steelyard.control.store import ControlStore
from steelyard.dashboard.reader import HistoryReader
from steelyard.dashboard.runs import Finished, ShownRun, followed
from steelyard.dashboard.server import DashboardServer
from steelyard.dashboard.simulated import example_slots
from tests.dashboard.browsing import chromium, column, model, opened
from tests.dashboard.model import NASTY, controlled

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser():
    """Start one browser for all tests."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser):
    """Open a page on a large screen; an error in the browser fails the test."""
    found = browser.new_page(viewport={"width": 1280, "height": 900})
    errors = []
    found.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    found.on("pageerror", lambda error: errors.append(str(error)))
    found.on("requestfailed", lambda request: errors.append(request.url))
    yield found
    found.close()
    assert [] == errors


@pytest.fixture
def control(tmp_path):
    """Return a control store, and the URL of a server that follows it."""
    with DashboardServer([followed(HistoryReader(tmp_path))]) as server:
        yield ControlStore(tmp_path), server.url


@pytest.fixture(scope="module")
def finished():
    """Return the slots of a finished run, and the URL of its server."""
    slots = example_slots(messages=60_000, slots=40)
    with DashboardServer([ShownRun("a run", Finished(slots), is_simulated=True)]) as server:
        yield slots, server.url


def wait_for_slot(page, number):
    """Wait until this slot is shown; the text with its number is set last."""
    page.wait_for_function(
        "(text) => Bokeh.documents[0].get_model_by_name('place').text.includes(text)",
        arg=f"slot {number} of",
    )


def test_the_page_follows_a_stream(control, page):
    """It waits for the first slot; then every new slot updates the bars and the blocks."""
    store, url = control
    opened(page, url)
    assert page.get_by_text("the page waits for the first").is_visible()
    loop = controlled(store, 1)
    wait_for_slot(page, 1)
    bars, owners = column(page, "bars_data_0", "messages"), column(page, "blocks_data_0", "owner")
    assert [1000.0] * 4 == bars
    assert [worker for worker in range(4) for _ in range(10)] == owners
    assert "about to move" in column(page, "blocks_data_0", "kind")
    controlled(store, 1, loop=loop)
    wait_for_slot(page, 2)
    assert column(page, "bars_data_0", "messages")[3] < 1000
    after = column(page, "blocks_data_0", "owner")
    assert loop.history[-1].workers[3].virtual_workers == after.count(3) < 10
    kinds = column(page, "blocks_data_0", "kind")
    moved = [v for v in range(40) if owners[v] != after[v]]
    assert moved
    assert {"just moved"} <= {kinds[virtual] for virtual in moved}
    assert page.get_by_text("move from 3 to").first.is_visible()
    assert page.get_by_text("busy", exact=True).first.is_visible()


def test_bars_are_redrawn(control, page):
    """The pixels of the screen change, not only the data."""
    store, url = control
    loop = controlled(store, 1)
    opened(page, url)
    wait_for_slot(page, 1)
    places = {"x": 0, "y": 150, "width": 1280, "height": 600}
    page.wait_for_timeout(500)
    before = page.screenshot(clip=places)
    controlled(store, 3, loop=loop)
    wait_for_slot(page, 4)
    page.wait_for_timeout(500)
    assert before != page.screenshot(clip=places)


def test_the_slider_replays(page, finished):
    """Keys and buttons show any slot, and replay the run from there."""
    slots, url = finished
    opened(page, url)
    wait_for_slot(page, 40)
    handle = page.locator(".noUi-handle")
    handle.focus()
    handle.press("Home")
    wait_for_slot(page, 1)
    assert [w.messages for w in slots[0].workers] == column(page, "bars_data_0", "messages")
    assert page.get_by_text("slot 1 of 40, replay").is_visible()
    handle.press("ArrowRight")
    wait_for_slot(page, 2)
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        "() => !Bokeh.documents[0].get_model_by_name('place').text.includes('slot 2 of')"
    )
    page.get_by_role("button", name="Pause").dispatch_event("click")  # a replay moves the page
    page.get_by_role("button", name="Latest").click()
    wait_for_slot(page, 40)


def test_a_key_that_is_a_script_is_text(control, page):
    """It is shown and not executed."""
    store, url = control
    controlled(store, 2, key=NASTY)
    opened(page, url)
    wait_for_slot(page, 2)
    assert page.get_by_text(NASTY).is_visible()
    assert "Steelyard" == page.title()
    controlled(store, 1, key="$$x^2$$ <img src=x onerror=document.title='owned'>")
    wait_for_slot(page, 3)
    assert page.get_by_text("$$x^2$$ <img src=x onerror=").is_visible()
    assert "Steelyard" == page.title()


@pytest.mark.parametrize("width", [1280, 1010, 720, 400, 320])
def test_nothing_is_wider_than_the_screen(page, finished, width):
    """The page fits phones and large screens."""
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, finished[1])
    wait_for_slot(page, 40)
    assert width >= page.evaluate("document.documentElement.scrollWidth")
    outside = page.evaluate(
        """() => [...document.querySelectorAll("section, header > *")]
            .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5)
            .map((e) => e.className)"""
    )
    assert [] == outside
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".series section")]
            .filter((e) => e.scrollWidth > e.clientWidth + 0.5)
            .map((e) => `${e.className}: ${e.scrollWidth} > ${e.clientWidth}`)"""
    )
    assert [] == cut


def colors(page):
    """Return the colors of the page and of the text in a figure."""
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    axis = "Bokeh.documents[0].get_model_by_name('bars_0').left[0].major_label_text_color"
    return ground, page.evaluate(axis)


def test_light_and_dark(page, finished):
    """The page follows the system, and the button changes the scheme permanently."""
    page.emulate_media(color_scheme="dark")
    opened(page, finished[1])
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    dark = ("rgb(16, 20, 25)", "#e9edf2")
    light = ("rgb(244, 246, 248)", "#1c2127")
    assert dark == colors(page)
    page.locator("#theme").click()
    assert light == colors(page)
    opened(page, finished[1])
    assert light == colors(page)


def test_two_runs_are_side_by_side_in_a_browser(page):
    """Each run has its own bars; a chart has the lines of both."""
    slots = example_slots(messages=20_000, slots=10)
    runs = [
        ShownRun("key grouping", Finished(slots[:4]), has_blocks=False),
        ShownRun("consistent grouping", Finished(slots)),
    ]
    with DashboardServer(runs) as server:
        opened(page, server.url)
        left, right = (page.locator("section.bars").nth(n).bounding_box() for n in (0, 1))
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] <= right["x"]
        assert 4 == len(column(page, "series_data_0", "slot"))
        assert 10 == len(column(page, "series_data_1", "slot"))
        assert "Workers, key grouping" in page.locator("section.bars").first.inner_text()
        assert 9 == model(page, "slot", "value")
        page.goto("about:blank")  # the end of the server would be an error
