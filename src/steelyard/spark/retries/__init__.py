"""What is the same when Spark runs a task again: which values, and whether their order.

plan_text.py         the text of EXPLAIN becomes a tree of steps
plan_facts.py        literals, column numbers and types of a plan, which its text does not prove
known_functions.py   what Spark's functions return when a task is run again
column_types.py      types within a plan, and which have equal values that differ
rows.py              what is known of rows and of the values in them
traced_step.py       a step with what is known of its inputs, and doubts about its expressions
made_columns.py      steps that make columns row by row
aggregates.py        steps that make values of many rows
kept_rows.py         steps that leave rows out or order them anew
combined_rows.py     steps with several inputs
steps.py             by the name of a step: what follows from it
lineage.py           from the sources of a frame, step by step, to its columns
repeated.py          what a frame's plan allows: which columns repeat, and whether their order does
"""
