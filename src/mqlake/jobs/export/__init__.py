"""Export messages to Parquet files."""
