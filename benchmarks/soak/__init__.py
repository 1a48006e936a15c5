"""A long run of a stream while its executors and its driver are killed."""
