"""What runs inside Spark's Python tasks.

packing.py           rows travel in blocks, one for each bin
worker.py            what a worker does with its blocks
stream_source.py     rows of a micro-batch to blocks, by its control version, with a report
stopwatch.py         rows, busy time and latencies of a stream's worker, in a report
pulled_worker.py     a stream's worker that is any task and keeps nothing
stateful_worker.py   a stream's worker that stays: its protocol, and the one that keeps nothing
period.py            when partial states leave a worker that keeps them
periodic_worker.py   keeps partial states for a period, then sends them on
merging_worker.py    keeps all partial states of its keys, and sends results that changed
state_values.py      partial states as values of Spark's state store
worker_output.py     the rows and blocks that leave a stream's worker, with a column for reports
quick_tasks.py       the next task of the same process starts sooner
task_context.py      the query, micro-batch and partition of a task: the only module that asks Spark

Executors need not have this package: it is shipped to them with what it imports.
"""
