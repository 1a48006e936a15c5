"""Find out which columns of a frame, and whether its order, are deterministic across task retries.

A value is deterministic if a retry of its task computes the same value again. A value is doubtful
if a retry may compute another value.

plan_text.py         parse the text of EXPLAIN into a tree of steps
plan_facts.py        take literals, column numbers and types from the plan itself, not from its text
known_functions.py   list Spark's functions by their behavior across task retries
column_types.py      find the types of columns, and types whose equal values may differ in bytes
rows.py              describe the rows of a step, and doubts about their values
traced_step.py       combine a step with its inputs, and find doubts about its expressions
made_columns.py      handle steps that compute columns row by row
aggregates.py        handle steps that compute values of many rows
kept_rows.py         handle steps that drop or reorder rows
combined_rows.py     handle steps with several inputs
steps.py             map the name of a step to the function that handles it
lineage.py           follow the columns of a plan, step by step, from its sources to its result
repeated.py          report the doubtful columns of a frame, and whether its rows keep their order
requests.py          prove that a frame of Spark Connect is deterministic, from its request alone
"""
