"""Steelyard on Spark against what Spark offers; one module for each question."""
