"""The control loop of a running stream: what workers report goes in, who gets what comes out.

Once a slot the counts of buckets become the next plan, the reports of workers become states, and
busy workers give virtual workers to idle ones. What was decided is published as a version; every
micro-batch pins one of them. Nothing here knows Spark.
"""
