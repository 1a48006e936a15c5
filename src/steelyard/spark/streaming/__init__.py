"""Consistent grouping as a running system: streams on Spark.

stream_grouping.py   the call of users: check the arguments and group a stream
grouped_stream.py    a grouped stream, for which users choose the work
requirements.py      check a stream and the session before any work starts
source_stage.py      pack rows into blocks by the control version; counts go to the driver
worker_stage.py      turn blocks into results or partial states; reports go to the driver
processors.py        run workers on the executors that hold their state
merging.py           merge the partial states of a key in Spark
state_schema.py      let Spark refuse a checkpoint of a query with another definition
checkpoints.py       refuse such a checkpoint before the query starts
stream_result.py     connect these stages into one query
listening.py         hand reports to the control loop, which publishes the next version
hidden_columns.py    names of the columns between the stages
stream_input.py      the sources of `steelyard stream`
stream_output.py     the sinks of `steelyard stream`
"""
