"""What runs inside Spark's Python tasks.

packing.py         rows travel in blocks, one for each bin
worker.py          what a worker does with its blocks
stream_source.py   rows of a micro-batch to blocks, by its control version, with a report
stream_worker.py   blocks of a micro-batch to results or partial states, timed, with a report
quick_tasks.py     the next task of the same process starts sooner
task_context.py    the query, micro-batch and partition of a task: the only module that asks Spark

Executors need not have this package: it is shipped to them with what it imports.
"""
