"""Streams of keys: generated streams like the paper's, and files in the original formats."""

from steelyard.datasets.catalog import Dataset, named, names
from steelyard.datasets.loading import Loaded, MalformedInput, load
from steelyard.datasets.message_stream import ArrayStream, Chunk, Stream
from steelyard.datasets.zipf import zipf_probabilities, zipf_ranks

__all__ = [
    "ArrayStream",
    "Chunk",
    "Dataset",
    "Loaded",
    "MalformedInput",
    "Stream",
    "load",
    "named",
    "names",
    "zipf_probabilities",
    "zipf_ranks",
]
