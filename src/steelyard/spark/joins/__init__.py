"""The parts of `sy.join`.

join_types.py    the types of joins, as Spark spells them
join_keys.py     the key columns of both frames, which may have different names and types
key_types.py     the type in which Spark compares keys of two types
match_counts.py  counts the rows and the pairs of both frames by bucket, and plans for them
meeting.py       sends the rows of both frames to their bins, and joins them there
unmatched.py     finds the rows without a match among copies of rows
"""
