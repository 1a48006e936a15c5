"""Spark's Python tasks, sooner: what its workers do around every task is made cheap.

This runs inside Spark's Python tasks and knows no Spark.
"""

import gc
import sys
from functools import cache


def prepare_for_more() -> None:
    """Make the tasks that this process has yet to run cheaper; for the end of a task.

    At its beginning it would be in vain: whatever a task imports brings the zip files back.
    """
    _spare_what_was_imported()
    # Before every task Spark lets each zip file on the path be read anew: most of what a short
    # task costs. They come back when they are needed.
    for path, importer in list(sys.path_importer_cache.items()):
        if type(importer).__name__ == "zipimporter":
            del sys.path_importer_cache[path]


@cache
def _spare_what_was_imported() -> None:
    """After every task Spark collects garbage among all that there is; leave what is there now.

    Once: what a function leaves behind later must be collected. (It is remembered here, as to ask
    `gc` for how much was left out takes longer than all the rest of a task.)
    """
    gc.freeze()
