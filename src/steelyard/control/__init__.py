"""The control loop of a running stream: reports enter; plans and assignments leave.

Once a slot, the control loop makes the next plan from the counts of buckets, and the state of every
worker from its reports. Busy workers then give virtual workers to idle workers. The control loop
publishes each decision as a control version, and every micro-batch pins one version. This package
does not depend on Spark.
"""
