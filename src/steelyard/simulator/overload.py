"""Refuse a stream that needs more than the capacity of the cluster."""

import numpy as np

from steelyard.datasets.message_stream import Stream
from steelyard.simulator.cluster import Cluster, Floats
from steelyard.simulator.service import PerKey, Service
from steelyard.validation import require_whole


def timetable(stream: Stream, cluster: Cluster) -> tuple[Floats, Floats]:
    """Return the times from which speeds apply on this stream, and the speeds of each time."""
    named = [c.at_message for c in cluster.changes if c.at_message is not None]
    for message in named:
        require_whole("the message of a change", message, least=0, most=stream.messages - 1)
    return cluster.timetable([stream.time_of(message) for message in named])


def refuse_overload(stream: Stream, cluster: Cluster, service: Service | None) -> None:
    """Raise a ValueError if more work arrives before the last message than the workers can do."""
    if stream.messages < 2:
        return
    end = stream.time_of(stream.messages - 1)
    begins, speeds = timetable(stream, cluster)
    until = np.minimum(np.append(begins[1:], np.inf), end)
    possible = float((np.clip(until - begins, 0, None) * speeds.sum(axis=1)).sum())
    work = _work(stream, service)
    # The last message is not counted, so a load of exactly 100 % is accepted.
    if work > possible * (1 + 1e-9):
        load = f"{work / possible:.0%}" if possible else "more than 100%"
        raise ValueError(
            f"the stream needs {load} of the capacity of the cluster, so queues would grow "
            "without bound; reduce the load, or set overload to simulate it anyway"
        )


def _work(stream: Stream, service: Service | None) -> float:
    """Return the work of all messages but the last."""
    if not isinstance(service, PerKey):
        return float(stream.messages - 1)
    service.require_fit(stream.keys)
    work = sum(float(service.work[chunk.keys].sum()) for chunk in stream.chunks())
    return work * (1 - 1 / stream.messages)
