"""Applications: what a user would copy.

Each stands on `import steelyard` and on pyspark, and is a page in the documentation. What they
decide (`likelihoods`, `trends`) knows no Spark.
"""
