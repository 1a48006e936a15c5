"""Measurements in Spark's real-time mode."""
