"""A model of workers that drives the control loop without Spark and without a clock."""

import numpy as np

from steelyard.control.controller import Controller
from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.control.version import ControlVersion
from steelyard.hashing import spread
from steelyard.plans import Planner

BUCKETS, ROWS = 2048, 100_000


class Model:
    """Micro-batches without pauses: sources follow the version, workers have different speeds.

    `seconds` is the least length of a micro-batch. A worker with rows needs some time to start, on
    average `start` seconds, and a random time for each row if `varies`.
    """

    def __init__(
        self,
        speeds,
        controller,
        weights=None,
        *,
        clock=float,
        lag=0,
        rows=ROWS,
        by_plan=True,
        seconds=0.0,
        start=0.0,
        varies=False,
    ):
        self.speeds, self.controller = np.array(speeds, float), controller
        self.weights = np.full(BUCKETS, 1 / BUCKETS) if weights is None else weights
        self.batch, self.random, self.clock = -1, np.random.default_rng(1), clock
        self.lag, self.rows, self.versions, self.by_plan = lag, rows, [], by_plan
        self.seconds, self.start, self.varies = seconds, start, varies
        self.noise = np.random.default_rng(2)

    def run(self, batches):
        """Run micro-batches; return the fraction of the capacity that each of them used."""
        return [self._one() for _ in range(batches)]

    def _one(self):
        self.batch += 1
        self.versions.append(self.controller.version)
        version = self.versions[max(0, self.batch - self.lag)]
        buckets = self.random.choice(BUCKETS, self.rows, p=self.weights)
        plan = version.plan or Planner(version.owners.size, buckets=BUCKETS).plan
        salts = spread(np.arange(self.rows))
        virtual = plan.route(buckets, salts) if self.by_plan else buckets % version.owners.size
        owners = version.owners[virtual]
        rows = np.bincount(owners, minlength=self.speeds.size)
        busy = self._busy(rows)
        counts = np.bincount(buckets, minlength=BUCKETS).astype(np.float32)
        reports = [
            WorkerReport(self.batch, w, int(n), float(t), 1, ((80, int(n)),))
            for w, (n, t) in enumerate(zip(rows, busy, strict=True))
            if n
        ]
        self.controller.finish_batch(
            self.batch,
            max(self.seconds, float(busy.max())),
            [SourceReport(self.batch, 0, 0, counts, (("hot", 7),), version.number)],
            reports,
            now=self.clock(self.batch),
        )
        return self.rows / busy.max() / self.speeds.sum()

    def _busy(self, rows):
        """Return the busy time of every worker."""
        work = self.noise.gamma(np.maximum(rows, 1e-9)) if self.varies else rows
        starts = self.noise.exponential(self.start, rows.size) * (rows > 0)
        return work / self.speeds + starts


def zipf(exponent):
    """Return weights of buckets, of which a few are hot."""
    weights = 1 / np.arange(1, BUCKETS + 1) ** exponent
    return weights / weights.sum()


def controller(workers=8, **settings):
    """Return a controller of delegated workers."""
    settings = {"virtual_workers": 100, "delegation": True, "buckets": BUCKETS, **settings}
    return Controller(workers, **settings)


def version(number, bins=4):
    """Return a version in which all owners equal its number."""
    return ControlVersion(number, None, np.full(bins, number, np.int32))
