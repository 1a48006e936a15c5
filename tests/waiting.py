"""Wait for what others do, on a machine that may be busy with other tests."""

import time

PATIENCE = 600
"""Seconds after which something hangs."""


def until(is_so, check=lambda: None):
    """What is so, as soon as it is; `check` may know before that it will never be."""
    deadline = time.monotonic() + PATIENCE
    while not (found := is_so()):
        check()
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)
    return found
