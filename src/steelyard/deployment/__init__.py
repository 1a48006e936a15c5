"""The demo, emulated machines, and the paper's deployment on Spark and Kafka.

demo.py                one stream with slow workers, grouped by key and by consistent grouping
emulated_machines.py   machines of unequal speed on one computer
paused_executors.py    executors that are slowed by pausing their processes
broker.py              a Kafka broker, its topics, and producers
deployed_strategies.py the grouping strategies that are compared, one value for each
strategy_grouping.py   a stream, grouped with one of these strategies
grid_settings.py       the settings of the deployment: strategies, delays, repetitions
measured_cluster.py    one strategy on one cluster, saturated or at an offered rate
grid_plan.py           the runs of the deployment, and their order
word_streams.py        words of a data set, sent to a Kafka topic
grid.py                all runs, one after the other, each saved when it ends
run_results.py         the result of a run, as a row of results.csv
"""
