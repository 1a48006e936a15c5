"""`steelyard workers`: show, drain and refill the workers of a running stream."""

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.console import console, examples, refuse
from steelyard.cli.options import INPUT, option

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.control.store import ControlStore

Control = Annotated[str, option(INPUT, "Control path of the stream.")]
Numbers = Annotated[list[int], typer.Argument(help="Numbers of workers.")]

workers = typer.Typer(
    help="Show, drain and refill the workers of a running stream.",
    no_args_is_help=True,
    epilog=examples(
        "steelyard workers show --control /shared/clicks",
        "steelyard workers drain 3 --control /shared/clicks",
    ),
)


@workers.command(epilog=examples("steelyard workers show --control /shared/clicks"))
def show(control: Control) -> None:
    """Show the workers in the last slot."""
    from steelyard.cli.stream_screen import workers_table

    console.print(workers_table(_last_slot(_store(control))))


@workers.command(epilog=examples("steelyard workers drain 3 5 --control /shared/clicks"))
def drain(numbers: Numbers, control: Control) -> None:
    """Move all virtual workers away from some workers at the end of the slot."""
    store = _store(control)
    known = {worker.worker for worker in _last_slot(store).workers}
    if (store.learned() or {}).get("source") is None:
        refuse(
            ValueError(
                "drain is for placement='delegated': with 'pull' workers own no virtual workers"
            )
        )
    drained = store.drained() | set(numbers)
    for number in numbers:
        if number not in known:
            refuse(ValueError(f"there is no worker {number}; the workers are {sorted(known)}"))
    if drained >= known:
        refuse(ValueError("the last worker cannot be drained: name fewer workers"))
    store.drain(drained)
    console.print(f"drained: {', '.join(map(str, sorted(drained)))}")


@workers.command(epilog=examples("steelyard workers refill 3 --control /shared/clicks"))
def refill(numbers: Numbers, control: Control) -> None:
    """Let drained workers get virtual workers again."""
    store = _store(control)
    left = store.drained() - set(numbers)
    store.drain(left)
    console.print(f"drained: {', '.join(map(str, sorted(left))) or 'none'}")


def _store(control: str) -> "ControlStore":
    from steelyard.control.store import ControlStore

    try:
        store = ControlStore(control)
    except ValueError as error:
        refuse(error)
    if not store.exists():
        refuse(ValueError(f"control: the folder {store.shown!r} does not exist"))
    return store


def _last_slot(store: "ControlStore") -> "Slot":
    from steelyard.control.history import last_slot

    slot = last_slot(store.history())
    if slot is None:
        refuse(ValueError(f"control: {store.shown!r} has no history yet"))
    return slot
