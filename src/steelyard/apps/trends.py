"""Which keys have more of a window than of the one before, as far as summaries can tell.

Summaries of windows enter, with counts that may be too low by a known error; trends leave whose
gains are certain.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from steelyard.validation import require_whole


@dataclass(frozen=True)
class Share:
    """The part of a window's messages that a key has: at least, and at most."""

    least: float
    most: float


@dataclass(frozen=True)
class TrendSummary:
    """The frequent keys of a window: the true count of any is from its count to that + error.

    >>> noon, later = datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 13)
    >>> summary = TrendSummary(noon, later, 100, {"a": 60, "b": 20}, error=5)
    >>> summary.share("a"), summary.share("never seen")
    (Share(least=0.6, most=0.65), Share(least=0.0, most=0.05))
    """

    start: datetime
    end: datetime
    messages: int
    counts: Mapping[Any, int]
    error: int
    """How much any count may be too low; keys without one have come at most so often."""

    def share(self, key: object) -> Share:
        """Of a key, whether it is among the frequent ones or not."""
        count = self.counts.get(key, 0)
        most = min(count + self.error, self.messages)
        return Share(count / self.messages, most / self.messages)

    def top(self, k: int) -> list[Any]:
        """The `k` keys with the highest counts, the highest first."""
        require_whole("k", k, least=1)
        return heapq.nsmallest(k, self.counts, key=lambda key: (-self.counts[key], str(key)))


@dataclass(frozen=True)
class Trend:
    """A key in a window, and in the one before."""

    start: datetime
    """Of the window."""
    key: Any
    now: Share
    before: Share

    @property
    def gain(self) -> float:
        """The part of all messages that it has more of now, at least; negative if not certain."""
        return self.now.least - self.before.most

    @property
    def growth(self) -> float:
        """How many times its share before it has now, at least."""
        return self.now.least / self.before.most if self.before.most else float("inf")


def trending(summaries: Iterable[TrendSummary], k: int) -> Iterator[Trend]:
    """For every window with one right before it, the `k` keys that gained most for certain.

    By the gain and not by the growth: a key that came once and never before has grown without
    bounds, and does not matter. Keys whose gain is not certain are left out.
    """
    require_whole("k", k, least=1)
    by_end = {summary.end: summary for summary in summaries}
    for now in sorted(by_end.values(), key=lambda summary: summary.start):
        before = by_end.get(now.start)
        if before is None:
            continue
        trends = [Trend(now.start, key, now.share(key), before.share(key)) for key in now.counts]
        gained = [trend for trend in trends if trend.gain > 0]
        yield from heapq.nsmallest(k, gained, key=lambda trend: (-trend.gain, str(trend.key)))
