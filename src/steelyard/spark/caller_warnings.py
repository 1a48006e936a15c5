"""Warn users at the line of their own code that called this package."""

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])


def warn_caller(message: str) -> None:
    """Warn at the nearest line outside this package, however many calls are in between.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_caller("the folder is empty")
    >>> [str(warning.message) for warning in caught]
    ['the folder is empty']
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
