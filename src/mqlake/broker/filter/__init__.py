"""The messages that a subscription selects: by tags, or by a SQL92 expression over properties."""
