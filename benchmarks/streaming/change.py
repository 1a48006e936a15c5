"""Measure how soon all workers are used again after hot keys and machines change."""

from benchmarks.spark.bench import Bar, Measured
from benchmarks.streaming.running import WORKERS, Bench, by_delegating, local, until
from benchmarks.timing import table
from steelyard.deployment.emulated_machines import ChangingMachines
from steelyard.simulator import Cluster

_KEYS_CHANGE, _MACHINES_CHANGE, _END = 12, 16, 30
_WANTED, _SLOTS = 0.9, 12


def change(bench: Bench) -> Measured:
    before = Cluster.machines(WORKERS, fast=3, times=5, total=WORKERS).speeds
    after = Cluster.machines(WORKERS, fast=5, times=4, total=WORKERS).speeds
    service = bench.service(WORKERS)
    machines = ChangingMachines(service, before, later=after, change=_MACHINES_CHANGE)
    with local() as spark:
        files = bench.stream(_END, hot_from=_KEYS_CHANGE)
        shares = bench.slots(spark, files, by_delegating, machines).used(machines)
    parts = {
        "{3,5}, from the start": shares[:_KEYS_CHANGE],
        "other keys are hot": shares[_KEYS_CHANGE:_MACHINES_CHANGE],
        "{5,4}": shares[_MACHINES_CHANGE:],
    }
    shown = table(
        f"delegated, {bench.seconds:g} s of work a slot: capacity used while the busiest is busy",
        *("change", "share in each slot", "90 % in slot"),
    )
    bars = []
    for name, part in parts.items():
        reached = until(part, _WANTED)
        shown.add_row(name, " ".join(f"{share:.2f}" for share in part), str(reached))
        bars.append(Bar(f"{name}: first slot with 90 %", reached, most=_SLOTS))
    return shown, bars
