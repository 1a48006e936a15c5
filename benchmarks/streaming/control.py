"""Measure the time of the control loop in the driver, and the size of its files."""

import time
from pathlib import Path

import numpy as np

from benchmarks.spark.bench import Bar, Measured
from benchmarks.streaming.running import Bench
from benchmarks.timing import table
from steelyard.control.controller import Controller
from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.control.store import ControlStore
from steelyard.datasets import zipf_ranks
from steelyard.hashing import spread

_WORKERS, _VIRTUAL, _BUCKETS, _SLOTS = 10, 100, 8192, 100


def control(bench: Bench) -> Measured:
    folder = bench.fresh()
    store = ControlStore(folder)
    controller = Controller(_WORKERS, _VIRTUAL, delegation=True, store=store, buckets=_BUCKETS)
    taken = []
    for batch in range(_SLOTS):
        reports = _reports(batch)
        begin = time.perf_counter()
        controller.finish_batch(batch, 10.0, *reports, time.time())
        taken.append((time.perf_counter() - begin) * 1000)
    history = (folder / "history.jsonl").stat().st_size / 1000
    files = [folder / "learned.json", max((folder / "versions").iterdir())]
    size = sum(Path(file).stat().st_size for file in files) / 1000
    shown = table(
        f"{_BUCKETS} buckets, {_WORKERS * _VIRTUAL} virtual workers, Zipf 1.2, {_SLOTS} slots",
        *("", "median", "99th percentile"),
    )
    shown.add_row(
        "a slot in the driver (ms)", *(f"{np.quantile(taken, q):.0f}" for q in (0.5, 0.99))
    )
    shown.add_row("written in a slot (kB)", f"{size:.0f}", "")
    shown.add_row("history (kB)", f"{history:.0f}", "")
    return shown, [
        Bar("a slot in the driver, ms", float(np.median(taken)), most=50),
        Bar("written in a slot, kB", size, most=200),
    ]


def _reports(batch: int) -> tuple[list[SourceReport], list[WorkerReport]]:
    """Return the reports of two sources, and of ten workers of which two are slow."""
    sources = []
    for source in range(2):
        ranks = zipf_ranks(500_000, 1.2, 100_000, batch * 2 + source)
        buckets = (spread(ranks) % _BUCKETS).astype(np.int64)
        counts = np.bincount(buckets, minlength=_BUCKETS).astype(np.float32)
        sources.append(SourceReport(batch, source, 0, counts, ()))
    noise = np.random.default_rng(batch).uniform(0.9, 1.1, _WORKERS)
    workers = [
        WorkerReport(batch, worker, 100_000, (5.0 + 3 * (worker < 2)) * noise[worker], 1000, ())
        for worker in range(_WORKERS)
    ]
    return sources, workers
