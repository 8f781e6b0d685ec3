"""Bytes to values and back, one module a format, without a disk, a clock or a log."""
