"""Send words of a data set to Kafka.

The name of a data set enters; a Kafka topic with its words leaves.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from steelyard import datasets
from steelyard.deployment.broker import Topic, fill
from steelyard.deployment.grid_settings import SOURCES

_CHUNK = 1 << 18
"""Words that are generated at once."""


@dataclass(frozen=True, eq=False)
class WordStream:
    """A stream of words as numbers and as text, and its Kafka topic."""

    topic: Topic
    codes: NDArray[np.integer]
    sample: pa.Array
    """The first words, as text."""

    def distinct(self, messages: int) -> int:
        """Count the different words among the last `messages`."""
        return int(np.unique(self.codes[-messages:]).size)


def load_words(servers: str, name: str, messages: int, folder: Path | None) -> WordStream:
    """Send the words of a data set to a new topic.

    Args:
        servers: The Kafka servers.
        name: "tw" for generated words, else the name of a Parquet file in `folder`.
        messages: Most messages to send.
        folder: The folder of the Parquet file.
    """
    messages = messages // SOURCES * SOURCES
    if name == "tw":
        dataset = replace(datasets.named("tw"), messages=messages)
        ranks = dataset.part(0, messages).keys
        codes: NDArray[np.integer] = ranks
        texts: list[pa.Array] = [
            dataset.key_names(ranks[first : first + _CHUNK]) for first in range(0, messages, _CHUNK)
        ]
    else:
        assert folder is not None
        column = pq.read_table(folder / f"{name}.parquet")["key"].combine_chunks()
        column = column.slice(0, min(messages, len(column) // SOURCES * SOURCES))
        codes = column.dictionary_encode().indices.to_numpy()
        texts = [column]
    topic = fill(servers, name.replace("_", "-"), texts)
    return WordStream(topic, codes, texts[0].slice(0, _CHUNK))
