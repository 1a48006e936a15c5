"""A stream that goes on while its executors and its driver are killed."""
