"""Which messages a subscription chooses: by tags, or by a SQL92 expression over properties."""
