"""What is the same when Spark runs a task again: which values, and whether their order.

plan_text.py         the text of EXPLAIN becomes a tree of steps
known_functions.py   what Spark's functions return when a task is run again
rows.py              what is known of rows and of the values in them
steps.py             what each kind of step makes of that
lineage.py           from the sources of a frame, step by step, to its columns
repeated.py          what a frame's plan allows: which columns repeat, and whether their order does
"""
