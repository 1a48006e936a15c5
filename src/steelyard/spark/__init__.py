"""The Spark layer: the only place that imports pyspark.

It adapts and decides nothing: decisions are made by objects that know no Spark.
"""
