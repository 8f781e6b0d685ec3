"""Brokers of one name that copy their log, in simulated time, with faults from seeds."""
