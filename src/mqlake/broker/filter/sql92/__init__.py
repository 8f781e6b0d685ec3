"""SQL92 filters over message properties (docs/filters.md)."""
