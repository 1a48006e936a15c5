"""The steady delegation: the paper's signals, with rules that converge and stay there."""

from dataclasses import dataclass

from steelyard.assignment import Assignment
from steelyard.delegation.base import Rules, SourceSide, WorkerSide
from steelyard.delegation.measures import Measure, Work
from steelyard.delegation.steady_source import SteadySource
from steelyard.delegation.steady_worker import SteadyWorker
from steelyard.validation import require_between, require_whole


@dataclass(frozen=True, kw_only=True)
class SteadyRules(Rules):
    """What a worker says stays one of three states; what is done about it is new.

    A worker smooths its utilization and knows what one of its virtual workers weighs: it is idle
    only if one more would fit, busy only if one less would not make it idle (or beyond
    `overload`). A source lets a request grow while it is fully met, drops it with the next report,
    moves several virtual workers at once, and, where nobody is idle, lets a busy worker give to
    normal ones after `patience` slots. A worker that is busy with a single virtual worker for
    long is left alone for a while, then tried again.

    While sources cannot keep up every worker is busy; then each compares its busy time with a fair
    one and wants to be within `band` of it. It then knows how far off it is as well: with
    `proportional` it tells by how many virtual workers, and all of them move at once, to normal
    workers too if these reported room.

    Meant for 20 virtual workers per worker or more (100 is a good number).
    """

    measure: Measure = Work()
    overload: float = 0.95
    smoothing: float = 0.3
    """Weight of the newest slot in the utilization."""
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
