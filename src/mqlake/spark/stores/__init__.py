"""The source "rocketmq" over several store directories as one table."""
