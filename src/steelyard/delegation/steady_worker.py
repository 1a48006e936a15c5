"""A worker's side of the steady delegation: it smooths its utilization and knows its band.

Measurements enter; a state leaves, and by how many virtual workers it is off.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.delegation.base import WorkerSide
from steelyard.delegation.signals import Measurement, Signal

if TYPE_CHECKING:
    from steelyard.delegation.steady import SteadyRules

_SUDDEN = 0.2
"""Of its utilization: a slot that is further off, and compared, is no noise to be smoothed."""


class SteadyWorker(WorkerSide):
    """Reports idle or busy only if one virtual worker more, or less, would help."""

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
        # What was measured with other virtual workers, by the other measure, or before a sudden
        # change, says nothing.
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
        # Beyond half of a virtual worker from what is fair, moving one brings it closer; a little
        # more keeps it from coming straight back.
        band = max(self._rules.band, 0.6 * one)
        if self._utilization < 1 - band:
            return Signal.IDLE
        if self._utilization > 1 + band:
            return Signal.BUSY
        return Signal.NORMAL

    def _by(self, owned: float) -> int:
        if not (self._rules.proportional and self._compared and self._utilization and owned):
            return 0
        # It would be fair to have 1 / utilization of what it has. Half or double of it at most: one
        # odd slot shall not take all away, and what one of few weighs is known badly.
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
