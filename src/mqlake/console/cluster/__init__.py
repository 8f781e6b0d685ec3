"""What pages show of a cluster: fetched through `mqlake.admin`, and kept for a few seconds."""
