"""The paper's deployment, on Structured Streaming and Kafka: who keeps up with slow machines.

settings.py     what is run: ways to group, delays, clusters, how often
broker.py       Kafka: a broker, topics, words sent to them
ways.py         the ways to group a stream: what a user would pick, and ours
running.py      one way on one cluster: as fast as it can, or at an offered rate
executors.py    executors of Spark's that are slowed for real
experiment.py   all runs, one after the other, each kept when it is done
outcomes.py     what came of a run: a row of the table
"""
