"""The records of a partition as columns."""
