"""Find trending keys: those with a larger share of a window than of the window before.

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
    """Bounds on the fraction of a window's messages that have a key."""

    least: float
    most: float


@dataclass(frozen=True)
class TrendSummary:
    """The frequent keys of a window, with bounds on their counts.

    Args:
        start: The start of the window.
        end: The end of the window.
        messages: The number of messages in the window.
        counts: The counts of the frequent keys.
        error: The true count of a frequent key is at least its count and at most its count plus
            `error`. Any other key occurs at most `error` times.

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

    def share(self, key: object) -> Share:
        """Return the share of a key, which need not be a frequent one."""
        count = self.counts.get(key, 0)
        most = min(count + self.error, self.messages)
        return Share(count / self.messages, most / self.messages)

    def top(self, k: int) -> list[Any]:
        """Return the `k` keys with the highest counts, the highest first."""
        require_whole("k", k, least=1)
        return heapq.nsmallest(k, self.counts, key=lambda key: (-self.counts[key], str(key)))


@dataclass(frozen=True)
class Trend:
    """The shares of a key in a window and in the window before.

    Args:
        start: The start of the window.
        key: The key.
        now: The share in the window.
        before: The share in the window before.
    """

    start: datetime
    key: Any
    now: Share
    before: Share

    @property
    def gain(self) -> float:
        """The least possible increase of the share; negative if an increase is not certain."""
        return self.now.least - self.before.most

    @property
    def growth(self) -> float:
        """The least possible ratio of the share now to the share before."""
        return self.now.least / self.before.most if self.before.most else float("inf")


def trending(summaries: Iterable[TrendSummary], k: int) -> Iterator[Trend]:
    """Yield, for every window that directly follows another, the `k` keys with the largest gains.

    Keys are ordered by gain and not by growth: the growth of a key that occurs once, and never
    before, is infinite. Keys whose gain is not certain are left out.
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
