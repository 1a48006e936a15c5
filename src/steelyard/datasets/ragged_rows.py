"""Find the first row of CSV files with another number of fields than the header.

Files enter; a sentence that names the file and the line leaves.
"""

import csv
import gzip
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def first_ragged_row(files: Iterable[Path], separator: str, *, multiline: bool) -> str | None:
    r"""Return where the first ragged row is, or None if no row is, or a file cannot be read.

    Args:
        files: The files; each begins with a header line.
        separator: The separator of the fields.
        multiline: Whether a field in quotes may contain line breaks.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "visits.csv")
    ...     _ = file.write_text("page,visit\nhome,1\nhome,2,3\n")
    ...     first_ragged_row([file], ",", multiline=False).replace(folder, "...")
    '.../visits.csv, line 3, is malformed: it has 3 fields, and the header has 2'
    """
    with suppress(OSError, ValueError, TypeError, csv.Error):
        for file in files:
            sizes = _sizes(file, separator, multiline=multiline)
            _, expected = next(sizes, (0, 0))
            for line, size in sizes:
                if size != expected:
                    fields = "1 field" if size == 1 else f"{size:,} fields"
                    return (
                        f"{file}, line {line}, is malformed: it has {fields}, and the header has "
                        f"{expected:,}"
                    )
    return None


def _sizes(file: Path, separator: str, *, multiline: bool) -> Iterator[tuple[int, int]]:
    """Yield the line and the number of fields of every row that is not empty."""
    opened = gzip.open if file.name.endswith(".gz") else open
    with opened(file, "rt", encoding="utf-8", errors="replace", newline="") as text:
        if multiline:
            rows = csv.reader(text, delimiter=separator)
            yield from ((rows.line_num, len(row)) for row in rows if row)
            return
        for number, line in enumerate(text, 1):
            row = next(csv.reader([line], delimiter=separator))
            if row:
                yield number, len(row)
