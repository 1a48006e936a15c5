from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard import experiments
from steelyard.experiments.execution import reproduce
from steelyard.report.writing import write_report

SCALE = 0.02


@pytest.fixture(scope="session")
def real_streams(tmp_path_factory) -> Path:
    """Return the folder of real streams; without them, generate a stream with drift."""
    shared = Path(__file__).parents[3] / "shared" / "data"
    if (shared / "reddit_domains.parquet").exists():
        return shared
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    era = np.arange(250_000) // 25_000
    keys = (rng.zipf(1.3, era.size) + era * 7) % 20_000
    table = pa.table({"ts": np.arange(era.size), "key": [f"site{key}.example" for key in keys]})
    pq.write_table(table, folder / "reddit_domains.parquet")
    return folder


@pytest.fixture(scope="session")
def reproduced(spark, real_streams, tmp_path_factory) -> SimpleNamespace:
    """Run all experiments at a fiftieth of the full size, and write the report."""
    folder = tmp_path_factory.mktemp("reproduced")
    chosen = [experiments.named(name) for name in experiments.names()]
    scale = experiments.Scale(SCALE, real_streams)
    results = reproduce(spark, chosen, folder, scale)
    claims = write_report(results, folder, SCALE)
    return SimpleNamespace(folder=folder, scale=scale, results=results, claims=claims)
