"""The floor below which no worker is judged: no virtual worker moves, and nothing is reported.

The work of a slot enters; whether it is enough to judge workers leaves.
"""

LOW_LOAD = 0.1
"""The utilization of the busiest worker below which the load of a slot is low.

A better balance cannot shorten the micro-batches by more than the busy time of the busiest worker,
here 10 %. The rest is Spark's own time. The start of a task then is a large part of each busy time,
so a worker with few messages seems slow, and would get even fewer.
"""

LEAST_FAIR_BUSY = 0.1
"""The least fair busy time, in seconds, from which the speed of a worker is known.

Starting a task takes about that long. With less, the next slots are added before a decision.
"""

LEAST_MESSAGES = 25
"""The least number of messages of a worker, on average, from which its speed is known.

If service times vary as much as their mean, the speed from 25 messages is off by a fifth (one
standard error). With less, the next slots are added before a decision.
"""


def is_low_load(busiest: float, seconds: float) -> bool:
    """Return whether the load of a slot is low.

    The length of a slot is the total duration of its micro-batches. Pauses between micro-batches
    do not count, so the result does not depend on the trigger interval. If the sources cannot keep
    up, micro-batches grow until the busiest worker is busy for most of the slot.

    Args:
        busiest: The busy time of the busiest worker, in seconds.
        seconds: The total duration of the micro-batches.

    >>> is_low_load(busiest=0.02, seconds=1.0), is_low_load(busiest=0.8, seconds=1.0)
    (True, False)
    """
    return busiest < LOW_LOAD * seconds
