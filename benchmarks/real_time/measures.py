"""The measurements in real-time mode: a hot key with slow workers, and the limit."""

import numpy as np

from benchmarks.real_time.running import Bench, Load, Run, balanced, by_key
from benchmarks.spark.bench import Bar, Measured
from benchmarks.timing import table
from steelyard.control.history import Slot

_COLUMNS = ("messages a second", "p50", "p99", "p99 of the last half", "delivered")


def hot_key(bench: Bench, workers: int, seconds: float) -> Measured:
    """Compare key grouping with ours, with a hot key and slow workers; then with uniform keys."""
    slow = workers // 4
    rate = 1.2 * Load(workers, 0, 0).limit_by_key
    uneven = Load(workers, rate, seconds, slow)
    runs = {
        "key grouping, hot key, slow workers": bench.run(uneven, by_key(slow)),
        "ours, hot key, slow workers": bench.run(uneven, balanced(slow)),
        "ours, hot key": bench.run(Load(workers, rate, seconds), balanced(0)),
        "ours, uniform keys": bench.run(Load(workers, rate, seconds, is_skewed=False), balanced(0)),
    }
    shown = table(
        f"{workers} workers, {slow} at 30 %, hot key 30 %, {rate:.0f} messages a second",
        *("grouped by", *_COLUMNS),
    )
    for name, run in runs.items():
        shown.add_row(name, *_cells(run, rate, seconds))
    theirs, ours, skewed, uniform = (_p99(run) for run in runs.values())
    learned = runs["ours, hot key, slow workers"].slots
    bars = [
        Bar("p99, key grouping / ours", theirs / ours, least=10),
        Bar("p99, skewed / uniform keys", skewed / uniform, most=1.5),
        Bar("slots until no worker is busy", _settled(learned), most=2),
    ]
    return shown, bars


def limit(bench: Bench, workers: int, seconds: float) -> Measured:
    """Find the load, as a part of the capacity, before the p99 passes a second."""
    shown = table(f"{workers} workers, {workers // 4} at 30 %", "load", *_COLUMNS)
    best = 0.0
    for used in (0.7, 0.8, 0.85, 0.9):
        load = Load(workers, 0, seconds, workers // 4)
        load = Load(workers, used * load.capacity, seconds, workers // 4)
        run = bench.run(load, balanced(load.slow), warm_up=60)
        shown.add_row(f"{used:.2f}", *_cells(run, load.rate, seconds))
        if run.quantile(0.99, after=60) >= 1:
            break
        best = used
    return shown, [Bar("load before p99 passes 1 s", best, least=0.85)]


def _p99(run: Run) -> float:
    return run.quantile(0.99, after=20)


def _cells(run: Run, rate: float, seconds: float) -> list[str]:
    half = 20 + seconds / 2
    delays = (run.quantile(0.5, 20), run.quantile(0.99, 20), run.quantile(0.99, half))
    part = run.latencies.size / run.sent
    return [f"{rate:.0f}", *(f"{1000 * delay:.0f} ms" for delay in delays), f"{part:.1%}"]


def _settled(slots: list[Slot]) -> int:
    """Return the number of slots until the busiest worker has at most 1.2 times the mean."""
    uneven = [slot.imbalance > 0.2 for slot in slots]
    return int(np.flatnonzero(uneven)[-1]) + 1 if any(uneven) else 0
