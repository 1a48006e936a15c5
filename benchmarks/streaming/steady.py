"""Measure how much of the capacity of eight workers is used if two of them are slow."""

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
from steelyard.deployment.emulated_machines import ByPartition, ByProcess, Machines

_SPEEDS = (*[1.0] * (WORKERS - 2), 0.3, 0.3)
_TASKS, _WANTED, _SLOTS = 8, 0.95, 12


def steady(bench: Bench) -> Measured:
    groupings: dict[str, tuple[Group, int]] = {
        "key grouping": (by_key, 2),
        "shuffle grouping": (by_shuffling, 2),
        f"pull, {_TASKS} tasks each": (by_pulling(_TASKS), 4),
        "delegated": (by_delegating, _SLOTS + 2),
    }
    shown = table(
        f"{WORKERS} workers, 2 at 30 %, {bench.seconds:g} s of work a slot: share of capacity used",
        *("grouped by", "floor (s)", "by the clock: slot 1", "last 3"),
        *("by the busiest: slot 1", "last 3", "95 % from slot"),
    )
    bars = []
    with local() as spark:
        for name, (group, files) in groupings.items():
            bench.console.print(name)
            by_process = ByProcess(str(bench.fresh()))
            place = by_process if name.startswith("pull") else ByPartition()
            machines = Machines(bench.service(sum(_SPEEDS)), _SPEEDS, place)
            floor = bench.floor(spark, group)
            slots = bench.slots(spark, bench.stream(files), group, machines)
            shares, used = slots.shares(machines), slots.used(machines)
            reached = until(used, _WANTED)
            cells = [f"{shares[0]:.2f}", f"{settled(shares):.2f}"]
            if name.startswith("pull"):  # a machine runs tasks of all workers
                bars.append(Bar("pull: share in the first slot", shares[0], least=0.8))
            else:
                cells += [f"{used[0]:.2f}", f"{settled(used):.2f}"]
                cells.append(str(reached) if reached <= len(used) else "never")
            shown.add_row(name, f"{floor:.1f}", *cells)
            if name == "delegated":
                bars.append(Bar("delegated: settled share", settled(used), least=_WANTED))
                bars.append(Bar("delegated: first slot with 95 %", reached, most=_SLOTS))
    return shown, bars
