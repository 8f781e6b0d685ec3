"""A broker whose role a controller decides (docs/replication.md, "Controller")."""
