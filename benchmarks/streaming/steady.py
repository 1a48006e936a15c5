"""Eight workers of which two are slow: how much of what they can do is done."""

from benchmarks.spark.bench import Bar, Measured
from benchmarks.streaming.running import (
    WORKERS,
    Bench,
    Group,
    by_delegating,
    by_key,
    by_pulling,
    by_shuffling,
    local,
    settled,
    until,
)
from benchmarks.timing import table
from steelyard.spark.machines import ByPartition, ByProcess, Machines

_SPEEDS = (*[1.0] * (WORKERS - 2), 0.3, 0.3)
_TASKS, _WANTED, _SLOTS = 8, 0.95, 12


def steady(bench: Bench) -> Measured:
    ways: dict[str, tuple[Group, int]] = {
        "key grouping": (by_key, 2),
        "shuffle grouping": (by_shuffling, 2),
        f"pull, {_TASKS} tasks each": (by_pulling(_TASKS), 4),
        "delegated": (by_delegating, _SLOTS + 2),
    }
    shown = table(
        f"{WORKERS} workers, 2 at 30 %, {bench.seconds:g} s of work a slot: share of what they can",
        *("grouped by", "floor (s)", "slot 1", "last 3", "with floor", "95 % in slot"),
    )
    bars = []
    with local() as spark:
        for name, (group, files) in ways.items():
            bench.console.print(name)
            by_process = ByProcess(str(bench.fresh()))
            place = by_process if name.startswith("pull") else ByPartition()
            machines = Machines(bench.service(sum(_SPEEDS)), _SPEEDS, place)
            floor = bench.floor(spark, group)
            slots = bench.slots(spark, bench.stream(files), group, machines)
            shares = slots.shares(machines, floor)
            reached = until(shares, _WANTED)
            shown.add_row(
                name,
                f"{floor:.1f}",
                f"{shares[0]:.2f}",
                f"{settled(shares):.2f}",
                f"{settled(slots.shares(machines)):.2f}",
                str(reached) if reached <= len(shares) else "never",
            )
            if name == "delegated":
                bars.append(Bar("delegated: settled share", settled(shares), least=_WANTED))
                bars.append(Bar("delegated: slot from which on 95 %", reached, most=_SLOTS))
            elif name.startswith("pull"):
                bars.append(Bar("pull: share in the first slot", shares[0], least=0.8))
    return shown, bars
