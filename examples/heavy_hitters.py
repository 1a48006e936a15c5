"""Find the domains that reddit linked to most in each quarter, and the trending ones.

python examples/heavy_hitters.py

It reads ../shared/data/reddit_domains.parquet (posts with `ts`, in seconds, and `key`, the domain).
If that file is absent, it generates posts whose hottest domain changes.
"""

from pathlib import Path

from steelyard.apps.heavy_hitters import heavy_hitters, summaries
from steelyard.apps.trends import trending
from steelyard.spark.session import session

REDDIT = Path(__file__).parents[2] / "shared" / "data" / "reddit_domains.parquet"


def posts(spark, path=REDDIT):
    """Return posts with a domain and a time."""
    if path.exists():
        rows = spark.read.parquet(str(path))
    else:  # two years, in which one domain after another becomes hot
        rows = spark.range(0, 40_000, 1, 4).selectExpr(
            "id * 1577 + 1325376000 AS ts",
            "if(pmod(xxhash64(id), 10) < 3, concat('hot', id DIV 5000, '.com'), "
            "concat('site', int(pow(10000, pmod(xxhash64(id, 1), 1000) / 1000)), '.com')) AS key",
        )
    return rows.selectExpr("key AS domain", "timestamp_seconds(ts) AS at")


def main(spark, path=REDDIT, capacity=500):
    """Print the six largest certain gains, of quarters with at least 1,000 posts."""
    found = heavy_hitters(
        posts(spark, path), "domain", time="at", window="91 days", capacity=capacity, workers=4
    ).cache()
    windows = {each.start: each for each in summaries(found) if each.messages >= 1000}
    trends = sorted(trending(windows.values(), k=1), key=lambda trend: -trend.gain)[:6]
    names = f"{'most frequent':<18} {'trending':<18} {'share':<15} before"
    print(f"{'quarter from':<13} {'posts':>8} {names}")
    for trend in sorted(trends, key=lambda trend: trend.start):
        window = windows[trend.start]
        (top,) = window.top(1)
        now, before = (f"{s.least:6.1%} to {s.most:5.1%}" for s in (trend.now, trend.before))
        print(
            f"{trend.start:%Y-%m-%d}    {window.messages:>8,} {top:<18.18} {trend.key:<18.18} "
            f"{now:<15} {before}"
        )


if __name__ == "__main__":
    with session("heavy hitters", "local[2]") as spark:
        main(spark)
