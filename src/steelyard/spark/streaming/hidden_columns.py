"""Names of the columns that exist only between the stages of a stream."""

from steelyard.spark.columns import HIDDEN

BUCKET, SALT, HASH = f"{HIDDEN}bucket", f"{HIDDEN}salt", f"{HIDDEN}hash"
WEIGHT, ARRIVED, PIN = f"{HIDDEN}weight", f"{HIDDEN}arrived", f"{HIDDEN}pin"
PLAN, WORKER = f"{HIDDEN}plan", f"{HIDDEN}worker"
BEGAN, ENDED = f"{HIDDEN}began", f"{HIDDEN}ended"
PANE, SHARD = f"{HIDDEN}pane", f"{HIDDEN}shard"

TIME = f"{HIDDEN}time"
"""The column of event times."""

WATERMARK = "spark.watermarkDelayMs"
"""Spark's metadata of a column that has a watermark."""

SHARDS = 64
"""Number of shards of states that Spark cannot merge; checkpoints depend on it: never change it."""
