"""Refuse a stream that brings more work than the whole cluster can do."""

import numpy as np

from steelyard.datasets.message_stream import Stream
from steelyard.simulator.cluster import Cluster, Floats
from steelyard.simulator.service import PerKey, Service
from steelyard.validation import require_whole


def timetable(stream: Stream, cluster: Cluster) -> tuple[Floats, Floats]:
    """The times from which speeds hold, and the speeds, on this stream."""
    named = [c.at_message for c in cluster.changes if c.at_message is not None]
    for message in named:
        require_whole("the message of a change", message, least=0, most=stream.messages - 1)
    return cluster.timetable([stream.time_of(message) for message in named])


def refuse_overload(stream: Stream, cluster: Cluster, service: Service | None) -> None:
    """Compare the work that arrives before the last message with what can be done until then."""
    if stream.messages < 2:
        return
    end = stream.time_of(stream.messages - 1)
    begins, speeds = timetable(stream, cluster)
    until = np.minimum(np.append(begins[1:], np.inf), end)
    possible = float((np.clip(until - begins, 0, None) * speeds.sum(axis=1)).sum())
    work = _work(stream, service)
    # The last message has no time of its own before the end: a load of exactly 100 % passes.
    if work > possible * (1 + 1e-9):
        load = f"{work / possible:.0%}" if possible else "more than any amount"
        raise ValueError(
            f"the stream is {load} of what the cluster can do, so queues grow for ever; "
            "give it less load, or say overload if that is what you want to see"
        )


def _work(stream: Stream, service: Service | None) -> float:
    """The work of all messages but the last."""
    if not isinstance(service, PerKey):
        return float(stream.messages - 1)
    service.require_fit(stream.keys)
    work = sum(float(service.work[chunk.keys].sum()) for chunk in stream.chunks())
    return work * (1 - 1 / stream.messages)
