"""A lake table that `mqlake follow` keeps, and the log after it, as one (docs/union-read.md)."""
