"""`mqlake follow`: what it brings into tables, whatever happens to it.

`python -m tests.spark.follow` kills it at random moments, and says whether each message is there
once.
"""
