"""`steelyard dashboard`: a page with the workers of a stream and the moves between them."""

import signal
import threading
import webbrowser
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from steelyard.cli.checks import require_free_port, require_port
from steelyard.cli.console import console, error_console, refuse, require_packages
from steelyard.cli.options import INPUT, PAGE, option
from steelyard.cli.spark_start import status_line

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.dashboard.runs import ShownRun
    from steelyard.dashboard.server import DashboardServer

_PORT = 5006
_PER_SECOND = 2.5
"""Slots of a simulated run that are shown in a second."""
_LONGEST = 60.0
"""Longest time in which a simulated run is shown, in seconds."""


def dashboard(
    control: Annotated[str | None, option(INPUT, "Control path of the stream to follow.")] = None,
    replay: Annotated[
        str | None, option(INPUT, "history.jsonl or control path of a run to replay.")
    ] = None,
    port: Annotated[int, option(PAGE, "Port of the page; 0: any free port.")] = _PORT,
    address: Annotated[str, option(PAGE, "Address to listen on.")] = "127.0.0.1",
    public: Annotated[
        bool, option(PAGE, "Allow an --address that other machines can reach.", "--public")
    ] = False,
    name: Annotated[
        list[str] | None, option(PAGE, "Another host name of the page, with --public.")
    ] = None,
    open_browser: Annotated[bool, option(PAGE, "Open the page in a browser.", "--open")] = False,
) -> None:
    """Show the workers of a stream on a page, live or afterwards. Ctrl-C stops it.

    Without --control and --replay the page shows a short simulated run.
    """
    if control is not None and replay is not None:
        refuse(ValueError("pass either --control or --replay, not both"))
    require_bokeh()
    try:
        require_port("port", port)
        runs = [_run(control, replay)]
    except ValueError as error:
        refuse(error)
    server = _start_server(runs, port, address, public=public, names=name or [])
    with server:
        _print_address(server, public=public)
        if open_browser:
            webbrowser.open(server.url)
        wait_for_interrupt()


def _run(control: str | None, replay: str | None) -> "ShownRun":
    from steelyard.dashboard.reader import HistoryReader, read_finished
    from steelyard.dashboard.runs import Finished, ShownRun, followed

    if control is not None:
        return followed(HistoryReader(control))
    if replay is not None:
        return ShownRun(replay, Finished(read_finished(replay)))
    require_packages("a simulated run", "schemes", "numba")
    from steelyard.dashboard.simulated import example_slots

    with error_console.status("Simulating a short run"):
        slots = example_slots()
    return paced_run("a simulated run: some of eight workers are slow", slots)


def paced_run(name: str, slots: "Sequence[Slot]") -> "ShownRun":
    """Return a simulated run that is shown slot by slot, like a live one."""
    from steelyard.dashboard.runs import Paced, ShownRun

    per_second = max(_PER_SECOND, len(slots) / _LONGEST)
    return ShownRun(name, Paced(slots, per_second), is_simulated=True)


def require_bokeh() -> None:
    """Refuse to start without Bokeh."""
    require_packages("the page", "dashboard", "bokeh")


def check_page(*, ui: bool, ui_port: int) -> None:
    """Check the options of the page before any work starts."""
    if ui:
        require_bokeh()
    try:
        (require_free_port if ui else require_port)("ui-port", ui_port)
    except ValueError as error:
        refuse(error)
    if ui_port and not ui:
        refuse(ValueError("ui-port needs --ui"))


def start_page(runs: "Sequence[ShownRun]", port: int) -> "DashboardServer":
    """Start a server for the page of a running command, and print its address."""
    server = _start_server(runs, port, "127.0.0.1", public=False, names=[])
    _print_address(server, public=False)
    return server


def wait_for_interrupt() -> None:
    """Wait until the user presses Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        console.print("Stopping")
    finally:
        signal.signal(signal.SIGINT, before)


def _start_server(
    runs: "Sequence[ShownRun]", port: int, address: str, *, public: bool, names: list[str]
) -> "DashboardServer":
    from steelyard.dashboard.server import DashboardServer

    try:
        return DashboardServer(runs, port, address, public=public, names=names)
    except ValueError as error:
        refuse(error)


def _print_address(server: "DashboardServer", *, public: bool) -> None:
    status_line.remove()
    console.print(f"The page is {server.url} (Ctrl-C stops it)", soft_wrap=True)
    if public:
        warning = (
            "There is no authentication: everyone who can reach "
            f"{server.address} can see the page and its keys"
        )
        error_console.print(warning, style="yellow", soft_wrap=True)
