"""`steelyard dashboard`: a page that shows who is slow, and what happens about it."""

import signal
import threading
import webbrowser
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.console import complain, complaints, console, require_packages

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.dashboard.runs import ShownRun
    from steelyard.dashboard.server import DashboardServer

_PORT = 5006
_PER_SECOND = 2.5
"""Slots of a simulation that is played."""
_LONGEST = 60.0
"""Seconds in which all slots of a simulation are played."""

Ui = Annotated[bool, typer.Option("--ui", help="Show it live on a page, on this machine.")]
UiPort = Annotated[int, typer.Option(help="Of that page; 0: any free one.")]


def dashboard(
    control: Annotated[
        str | None, typer.Option(help="Follow the stream of this control path.")
    ] = None,
    replay: Annotated[
        str | None, typer.Option(help="Show a run that is over: history.jsonl or control path.")
    ] = None,
    port: Annotated[int, typer.Option(help="0: any free one.")] = _PORT,
    address: Annotated[str, typer.Option(help="What to listen on.")] = "127.0.0.1",
    public: Annotated[
        bool, typer.Option("--public", help="Let other machines see it, at such an address.")
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option(help="With --public: a host name that browsers use.")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
) -> None:
    """Show a stream's workers on a page, live or afterwards. Ctrl-C stops it.

    Without --control and --replay a short simulated run is played.
    """
    if control is not None and replay is not None:
        complain(ValueError("control and replay exclude each other: follow a stream, or replay"))
    require_bokeh()
    try:
        runs = [_run(control, replay)]
    except ValueError as error:
        complain(error)
    server = _started(runs, port, address, public=public, names=name or [])
    with server:
        _tell(server, public=public)
        if open_browser:
            webbrowser.open(server.url)
        stay()


def _run(control: str | None, replay: str | None) -> "ShownRun":
    from steelyard.dashboard.reader import HistoryReader, read_finished
    from steelyard.dashboard.runs import Finished, ShownRun, followed

    if control is not None:
        return followed(HistoryReader(control))
    if replay is not None:
        return ShownRun(replay, Finished(read_finished(replay)))
    from steelyard.dashboard.simulated import example_slots

    with complaints.status("Simulating a short run"):
        slots = example_slots()
    return played("a simulated run: some of eight workers are slow", slots)


def played(name: str, slots: "Sequence[Slot]") -> "ShownRun":
    """A simulated run that is shown as if it ran now."""
    from steelyard.dashboard.runs import Paced, ShownRun

    per_second = max(_PER_SECOND, len(slots) / _LONGEST)
    return ShownRun(name, Paced(slots, per_second), is_simulated=True)


def require_bokeh() -> None:
    """Complain where there is no Bokeh, before anything starts."""
    require_packages("the page", "dashboard", "bokeh")


def shown(runs: "Sequence[ShownRun]", port: int) -> "DashboardServer":
    """A server of the page for a command that runs on; its address is told."""
    server = _started(runs, port, "127.0.0.1", public=False, names=[])
    _tell(server, public=False)
    return server


def stay() -> None:
    """Keep serving until somebody presses Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        console.print("Stopping")
    finally:
        signal.signal(signal.SIGINT, before)


def _started(
    runs: "Sequence[ShownRun]", port: int, address: str, *, public: bool, names: list[str]
) -> "DashboardServer":
    from steelyard.dashboard.server import DashboardServer

    try:
        return DashboardServer(runs, port, address, public=public, names=names)
    except ValueError as error:
        complain(error)


def _tell(server: "DashboardServer", *, public: bool) -> None:
    console.print(f"The page is {server.url} (Ctrl-C stops it)", soft_wrap=True)
    if public:
        told = f"Whoever reaches {server.address} sees it, keys included: nobody is asked who he is"
        complaints.print(told, style="yellow", soft_wrap=True)
