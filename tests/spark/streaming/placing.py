"""Placements by name, for parametrized tests and for jobs on a command line."""

import steelyard as sy


def placed(name, period=1):
    """Return the placement of this name; only delegated workers have a period."""
    return sy.Delegated(period=period) if name == "delegated" else sy.Pull()
