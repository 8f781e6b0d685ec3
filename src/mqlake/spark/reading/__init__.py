"""Any source as readers of Spark, and tools of these."""
