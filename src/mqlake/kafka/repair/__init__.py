"""Repair: rebuild indexes from logs, and recover after an unclean stop."""
