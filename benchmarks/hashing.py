"""Hash a column of keys, and compare the time with Arrow and the xxhash package."""

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from rich.table import Table

from benchmarks.streams import ranks
from benchmarks.timing import best_seconds, table
from steelyard.hashing import hash_keys

ROWS = 2_000_000


def _by_xxhash(texts: list[bytes]) -> list[int]:
    return [xxhash.xxh64_intdigest(text, 42) for text in texts]


def run() -> list[Table]:
    numbers = pa.array(ranks(1.0, ROWS), pa.int64())
    columns = {
        "short strings": pc.binary_join_element_wise("user", numbers.cast(pa.string()), ""),
        "longs": numbers,
    }
    shown = table(f"Hashing {ROWS:,} keys", "keys", "M keys/s", "x dictionary_encode", "x xxhash")
    for name, column in columns.items():
        texts = [str(key).encode() for key in column.slice(0, ROWS // 20).to_pylist()]
        best = best_seconds(
            {
                "ours": partial(hash_keys, column),
                "encode": partial(pc.dictionary_encode, column),
                "xxhash": partial(_by_xxhash, texts),
            }
        )
        shown.add_row(
            name,
            f"{ROWS / best['ours'] / 1e6:.0f}",
            f"{best['encode'] / best['ours']:.1f}",
            f"{20 * best['xxhash'] / best['ours']:.1f}",
        )
    return [shown]
