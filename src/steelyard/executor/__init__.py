"""The code that runs inside Spark's Python tasks.

packing.py           rows travel in blocks, one for each bin
worker.py            process the blocks of a worker
stream_source.py     pack the rows of a micro-batch into blocks by its control version, and report
stopwatch.py         measure rows, busy time and latencies of a worker of a stream
pulled_worker.py     a worker of a stream that runs in any task and keeps no state
stateful_worker.py   the protocol of a delegated worker, and the delegated worker without state
period.py            decide when partial states leave a delegated worker
periodic_worker.py   keep partial states for a period, then send them on
merging_worker.py    keep all partial states of some keys, and send the results that changed
state_values.py      store partial states as values of Spark's state store
worker_output.py     the rows and blocks that leave a worker of a stream, with a column for reports
plan_from_counts.py  make a routing plan inside a query
real_time_plan.py    look up the plan of a batch of a real-time query, before the batch begins
quick_tasks.py       make the next task in the same process start sooner
task_context.py      the query, micro-batch and partition of a task: the only module that asks Spark

Executors do not need this package: a query ships it to them with the modules that it imports.
"""
