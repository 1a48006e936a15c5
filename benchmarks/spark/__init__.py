"""Compare Steelyard on Spark with Spark's own operations; one module for each question."""
