"""The worker side of the steady delegation, which smooths the utilization of a worker.

Measurements enter; a state leaves, and the number of virtual workers too many or too few.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.delegation.base import WorkerSide
from steelyard.delegation.signals import Measurement, Signal

if TYPE_CHECKING:
    from steelyard.delegation.steady import SteadyRules

_SUDDEN = 0.2
"""The relative change of a compared utilization above which it is not noise to be smoothed."""


class SteadyWorker(WorkerSide):
    """A worker side that reports idle or busy only if moving one virtual worker would help."""

    def __init__(self, rules: "SteadyRules", slot: float) -> None:
        super().__init__(slot)
        self._rules = rules
        self._utilization = 0.0
        self._owned: float | None = None
        self._compared = False
        self._newest = Signal.NORMAL

    def _state(
        self, seen: Measurement, owned: float, seconds: float, fair_busy: float | None
    ) -> Signal:
        compare = fair_busy is not None
        if fair_busy is not None:
            newest = seen.busy / fair_busy
        else:
            newest = self._rules.measure.utilization(seen, seconds)
        # Discard the smoothed value if it comes from another number of virtual workers or from the
        # other measure, or if the load changes suddenly.
        is_sudden = (
            compare
            and self._rules.proportional
            and abs(newest - self._utilization) > _SUDDEN * self._utilization
        )
        if owned != self._owned or compare != self._compared or is_sudden:
            self._utilization = newest
        else:
            self._utilization += self._rules.smoothing * (newest - self._utilization)
        self._owned, self._compared = float(owned), compare
        one = self._utilization / owned if owned else 0.0
        self._newest = self._by_comparison(one) if compare else self._by_thresholds(one)
        return self._newest

    def _by_thresholds(self, one: float) -> Signal:
        rules, u = self._rules, self._utilization
        if u < rules.low and u + one <= rules.high:
            return Signal.IDLE
        if u > rules.high and (u - one >= rules.low or u > rules.overload):
            return Signal.BUSY
        return Signal.NORMAL

    def _by_comparison(self, one: float) -> Signal:
        # Moving a virtual worker helps if the distance from the fair load is more than half of its
        # load. A slightly wider band prevents it from moving back at once.
        band = max(self._rules.band, 0.6 * one)
        if self._utilization < 1 - band:
            return Signal.IDLE
        if self._utilization > 1 + band:
            return Signal.BUSY
        return Signal.NORMAL

    def _by(self, owned: float) -> int:
        if not (self._rules.proportional and self._compared and self._utilization and owned):
            return 0
        # The fair number is the current one divided by the utilization. It is limited to half and
        # double: one unusual slot must not move everything, and with few virtual workers the load
        # of one is known only roughly.
        fair = min(max(owned / self._utilization, owned / 2), 2 * owned)
        if self._newest is Signal.NORMAL:
            return max(0, round(fair - owned))
        return max(1, round(abs(owned - fair)))

    def save(self) -> dict[str, Any]:
        mine = {
            "utilization": self._utilization,
            "owned": self._owned,
            "compared": self._compared,
        }
        return {**super().save(), **mine}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        super()._restore(saved)
        self._utilization = saved["utilization"]
        self._owned = saved["owned"]
        self._compared = saved["compared"]
