"""Make good again: indexes from logs, what an unclean stop left."""
