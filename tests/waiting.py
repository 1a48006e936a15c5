"""Wait for a condition, on a machine that may be busy with other tests."""

import time

PATIENCE = 600
"""The seconds after which a test gives up waiting."""


def until(condition, check=lambda: None):
    """Wait for the first true result of `condition`, and return it.

    `check` is called in between, and may raise an error if the condition can never hold.
    """
    deadline = time.monotonic() + PATIENCE
    while not (result := condition()):
        check()
        assert time.monotonic() < deadline, f"the condition did not hold within {PATIENCE} seconds"
        time.sleep(0.05)
    return result
