"""The log between masters and slaves, without I/O (docs/formats/replication.md)."""
