"""The steady delegation: the signals of the paper, with rules that converge and stay stable."""

from dataclasses import dataclass

from steelyard.assignment import Assignment
from steelyard.delegation.base import Rules, SourceSide, WorkerSide
from steelyard.delegation.measures import Measure, Work
from steelyard.delegation.steady_source import SteadySource
from steelyard.delegation.steady_worker import SteadyWorker
from steelyard.validation import require_between, require_whole


@dataclass(frozen=True, kw_only=True)
class SteadyRules(Rules):
    """Rules that use the three states of the paper, and change the reaction to them.

    Worker side: a worker smooths its utilization and knows the mean load of its virtual workers. It
    is idle only if one more virtual worker would fit. It is busy only if it would not become idle
    with one less, or if its utilization is above `overload`.

    Source side: the request of a worker is valid until its next report, and grows while it is met
    in full. Several virtual workers move at once. If no worker is idle for `patience` slots, a busy
    worker gives to normal workers. A worker that stays busy with a single virtual worker loses it,
    and gets one again after a pause.

    If the sources cannot keep up, every worker is busy all the time. Then each worker compares its
    busy time with the fair busy time, and is normal within `band` of it. With `proportional`, it
    also reports how many virtual workers it has too many or too few. All of them move at once, also
    to normal workers that reported room.

    The rules are made for at least 20 virtual workers per worker; 100 is a good number.

    Args:
        measure: The load measure that defines the utilization of a worker.
        low: The utilization below which a worker is idle.
        high: The utilization above which a worker is busy.
        overload: The utilization above which a worker is busy in any case.
        smoothing: The weight of the newest slot in the smoothed utilization, above 0 to 1.
        patience: The slots for which a busy worker waits for an idle one.
        band: The accepted distance from the fair busy time, as a fraction of it.
        proportional: Whether workers report how many virtual workers they have too many or too few.
    """

    measure: Measure = Work()
    overload: float = 0.95
    smoothing: float = 0.3
    patience: int = 2
    band: float = 0.03
    proportional: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between("overload", self.overload, least=self.high)
        require_between("smoothing", self.smoothing, above=0, most=1)
        require_whole("patience", self.patience, least=1)
        require_between("band", self.band, above=0, most=1)

    def worker(self, slot: float) -> WorkerSide:
        return SteadyWorker(self, slot)

    def source(self, assignment: Assignment) -> SourceSide:
        return SteadySource(self, assignment)
