"""Consistent grouping as a running system: streams on Spark.

sources.py      rows to blocks, by the control version of the micro-batch; counts go to the driver
workers.py      blocks to results or partial states, timed; reports go to the driver
processors.py   workers that stay where their state is
merging.py      partial states of a key become its result
listening.py    reports reach the control loop, which publishes the next version
grouped.py      these, put together: a stream that is grouped
grouping.py     what users call: everything is checked first
"""
