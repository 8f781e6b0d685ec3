"""A table and the newer messages of its logs as one (docs/union-read.md)."""
