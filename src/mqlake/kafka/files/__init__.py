"""Files that are read when they are asked for, and files that this process writes."""
