"""Table functions about store directories, for plain SQL (docs/spark-sql.md)."""
