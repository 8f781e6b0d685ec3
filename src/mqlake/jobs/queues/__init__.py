"""Queue entries of tasks: runs, the allocation of queue offsets, and files written by position."""
