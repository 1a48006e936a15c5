"""The metrics of the paper, as it defines them.

Assignments of messages to workers enter; numbers leave. The same functions apply to virtual workers
and other bins.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def load(workers_of: NDArray[np.integer], workers: int) -> Counts:
    """Return the number of messages that are assigned to each worker.

    >>> load(np.array([0, 2, 2]), workers=3)
    array([1, 0, 2])
    """
    return np.bincount(workers_of, minlength=workers)


def normalized_load(loads: ArrayLike, capacities: ArrayLike = 1.0) -> Floats:
    """Return load / capacity, which the paper calls resource utilization.

    >>> normalized_load([10, 10], capacities=[10, 20])
    array([1. , 0.5])
    """
    capacity = np.asarray(capacities, np.float64)
    if not (capacity > 0).all():
        raise ValueError(f"capacities must be positive numbers, got {capacities!r}")
    normalized: Floats = np.asarray(loads, np.float64) / capacity
    return normalized


def imbalance(loads: ArrayLike, capacities: ArrayLike = 1.0) -> float:
    """Return the largest normalized load minus the mean normalized load.

    >>> imbalance([30, 10, 20])
    10.0
    """
    normalized = normalized_load(loads, capacities)
    return float(normalized.max() - normalized.mean()) if normalized.size else 0.0


def normalized_imbalance(loads: ArrayLike, capacities: ArrayLike = 1.0) -> float:
    """Return the imbalance divided by the mean normalized load, as the figures show it.

    >>> normalized_imbalance([30, 10, 20])
    0.5
    """
    normalized = normalized_load(loads, capacities)
    mean = normalized.mean() if normalized.size else 0.0
    return float(normalized.max() / mean - 1) if mean else 0.0


def _distinct_pairs(
    keys: NDArray[np.integer], workers_of: NDArray[np.integer], workers: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the key, numbered from 0, and the worker of each different (key, worker) pair."""
    if workers_of.size and not 0 <= workers_of.min() <= workers_of.max() < workers:
        raise ValueError(
            f"workers must be numbers from 0 to {workers - 1}, "
            f"got numbers from {workers_of.min()} to {workers_of.max()}"
        )
    if keys.size and not 0 <= keys.min() <= keys.max() < 2**62 // workers:
        keys = np.unique(keys, return_inverse=True)[1]  # one pair must fit into one number
    pairs = np.sort(keys.astype(np.int64) * workers + workers_of.astype(np.int64))
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: pairs.size]]  # faster than np.unique
    numbers = np.unique(pairs // workers, return_inverse=True)[1]
    return numbers, pairs % workers


def memory(keys: NDArray[np.integer], workers_of: NDArray[np.integer], workers: int) -> Counts:
    """Return the number of different keys that are assigned to each worker.

    >>> memory(np.array([7, 7, 8]), np.array([0, 0, 0]), workers=2)
    array([2, 0])
    """
    return np.bincount(_distinct_pairs(keys, workers_of, workers)[1], minlength=workers)


def memory_cost(keys: NDArray[np.integer], workers_of: NDArray[np.integer], workers: int) -> float:
    """Return the mean number of workers that hold a key.

    >>> memory_cost(np.array([7, 7, 8]), np.array([0, 1, 0]), workers=2)
    1.5
    """
    owners = _distinct_pairs(keys, workers_of, workers)[0]
    return owners.size / (int(owners[-1]) + 1) if owners.size else 0.0


def key_copies(keys: NDArray[np.integer], workers_of: NDArray[np.integer], workers: int) -> Counts:
    """Return the number of workers that hold each different key, in ascending order of keys.

    >>> key_copies(np.array([7, 7, 8]), np.array([0, 1, 0]), workers=2)
    array([2, 1])
    """
    return np.bincount(_distinct_pairs(keys, workers_of, workers)[0])


def execution_latency(arrivals: ArrayLike, finishes: ArrayLike) -> Floats:
    """Return the finish time minus the arrival time of each message.

    >>> execution_latency([0.0, 1.0], [2.0, 1.5])
    array([2. , 0.5])
    """
    latency: Floats = np.asarray(finishes, np.float64) - np.asarray(arrivals, np.float64)
    if (latency < 0).any():
        raise ValueError("a message cannot finish before it arrives")
    return latency


def queue_length(arrivals: ArrayLike, finishes: ArrayLike, at: float) -> int:
    """Return the number of messages that have arrived and are not finished at the time `at`.

    >>> queue_length(arrivals=[0, 1, 2, 9], finishes=[3, 4, 5, 10], at=3)
    2
    """
    here = np.asarray(arrivals) <= at
    return int(np.count_nonzero(here & (np.asarray(finishes) > at)))


def utilization(messages: ArrayLike, capacities: ArrayLike, seconds: float) -> Floats:
    """Return messages / (capacity * seconds) of each worker; above 1 the worker falls behind.

    >>> utilization([80, 80], capacities=[10, 20], seconds=10)
    array([0.8, 0.4])
    """
    return normalized_load(messages, np.asarray(capacities, np.float64) * seconds)


def throughput(finishes: ArrayLike, begin: float, end: float) -> float:
    """Return the messages that finish per second from `begin` until before `end`.

    >>> throughput([0.5, 1.0, 2.5], begin=0, end=2)
    1.0
    """
    if end <= begin:
        raise ValueError(f"end must be after begin, {begin}, got {end}")
    times = np.asarray(finishes)
    return int(np.count_nonzero((times >= begin) & (times < end))) / (end - begin)
