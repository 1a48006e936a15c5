"""Data sets that are generated on Spark equal those that are generated without it."""

import pytest

from steelyard import datasets
from steelyard.spark.generated_messages import messages, write
from steelyard.spark.versions.arrow import to_arrow


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_messages_are_the_same_for_any_number_of_partitions(spark, partitions):
    """Every message has the same number, time and key."""
    stream = datasets.named("wp", fraction=0.002, seed=5)
    rows = to_arrow(messages(spark, stream, partitions)).sort_by("message").to_pydict()
    whole = stream.part(0, stream.messages)
    assert rows["message"] == list(range(44_000))
    assert rows["time"] == whole.times.tolist()
    assert rows["key"] == stream.key_names(whole.keys).to_pylist()


def test_existing_data_is_not_overwritten(spark, tmp_path):
    """Spark refuses a second write to the same folder, and the first data stays."""
    stream = datasets.named("zf", fraction=1e-5)
    write(spark, stream, str(tmp_path / "zf"), partitions=2)
    with pytest.raises(Exception, match="PATH_ALREADY_EXISTS"):
        write(spark, stream, str(tmp_path / "zf"))
    assert spark.read.parquet(str(tmp_path / "zf")).count() == 100
