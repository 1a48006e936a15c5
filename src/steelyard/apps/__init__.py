"""Applications that users can copy and adapt.

Each one uses `import steelyard` and pyspark, and has a page in the documentation. The modules
`likelihoods` and `trends` make the decisions and do not use Spark.
"""
