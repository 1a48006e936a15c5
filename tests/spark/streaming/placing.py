"""Placements by name, as parametrized tests and jobs on a command line have them."""

import steelyard as sy


def placed(name, period=1):
    """The placement of this name; only delegated workers have a period."""
    return sy.Delegated(period=period) if name == "delegated" else sy.Pull()
