"""Compile a numeric loop to machine code.

A plain function enters; a compiled function of the same type leaves. All compiled code of the
package uses this module, so that the compiler's settings are in one place.

numba caches a compiled loop beside its source file and compiles it again when *that file* changes.
A loop that calls a function of another file keeps the old copy of that function. After editing such
a function, run `make clean`. Nothing is cached for a file inside a wheel or another zip file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

try:
    from numba import njit
except ImportError as error:
    raise ImportError(
        "Grouping schemes, hash_keys, data sets, the simulator and the doctor need numba, which is "
        "not installed: install the extra 'schemes' of steelyard, or numba itself"
    ) from error

Function = Callable[..., Any]


def compiled(function: Function) -> Function:
    """Compile `function`; it releases the interpreter lock while it runs."""
    has_file = Path(function.__code__.co_filename).is_file()
    return cast("Function", njit(cache=has_file, nogil=True, error_model="numpy")(function))
