"""The demo, emulated machines, and the paper's deployment on Spark and Kafka.

demo.py                one stream, by key and by consistent grouping, some workers slow
emulated_machines.py   machines of unequal speed on one computer
paused_executors.py    executors that are slowed by pausing their processes
broker.py              Kafka: a broker, topics, words sent to them
deployed_strategies.py the grouping strategies that are compared, one value for each
strategy_grouping.py   a stream, grouped with one of these strategies
grid_settings.py       the settings of the deployment: strategies, delays, repetitions
measured_cluster.py    one strategy on one cluster: as fast as it can, or at an offered rate
grid_plan.py           the runs of the deployment, and their order
word_streams.py        words of a data set, sent to a topic of Kafka
grid.py                all runs, one after the other, each kept when it is done
run_results.py         the result of a run: a row of the table
"""
