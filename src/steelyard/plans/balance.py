"""The balancing settings that all calls share: how evenly to balance, and which rows to count."""

from dataclasses import dataclass

from steelyard.hashing import MOST_BINS
from steelyard.reported_keys import require_report_keys
from steelyard.validation import require_between, require_whole


@dataclass(frozen=True)
class Balance:
    """Balance rows by counts of their keys; the defaults suit most data.

    Every call that distributes rows accepts a `Balance` as `routing`. A setting that a call does
    not need has no effect there, so that one `Balance` can serve several calls.

    Args:
        epsilon: No worker gets more than `(1 + epsilon)` times its share of the rows.
        sample: Fraction of the rows to count, for inputs that are costly to read; None counts all
            rows. Rows are counted before they are moved, except in streams and when they are read
            from files.
        buckets: Keys are hashed into this many buckets, and rows are counted by bucket.
        decay: Streams only: the weight of all earlier counts when new ones arrive. 0 forgets them.
        report_keys: How reports, errors and descriptions name the hot keys that were counted:
            "plain", "hashed" or "hidden". None: as the environment variable STEELYARD_REPORT_KEYS
            says, by default "plain".

    >>> Balance(epsilon=0.05)
    Balance(epsilon=0.05, sample=None, buckets=8192, decay=0.2, report_keys=None)
    >>> Balance(epsilon=0)
    Traceback (most recent call last):
    ...
    ValueError: epsilon must be a number above 0 and at most 10, got 0
    """

    epsilon: float = 0.01
    sample: float | None = None
    buckets: int = 8192
    decay: float = 0.2
    report_keys: str | None = None

    def __post_init__(self) -> None:
        require_between("epsilon", self.epsilon, above=0, most=10)
        if self.sample is not None:
            require_between("sample", self.sample, above=0, most=1)
        require_whole("buckets", self.buckets, least=1, most=MOST_BINS)
        require_between("decay", self.decay, least=0, most=1)
        if self.report_keys is not None:
            require_report_keys("report_keys", self.report_keys)
