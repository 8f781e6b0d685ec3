"""Run mqlake's jobs on Spark: embedded in this machine, on a cluster, over Spark Connect."""
