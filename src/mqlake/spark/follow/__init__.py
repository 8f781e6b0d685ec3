"""Follow a store into a lake table, or bring its derived files up to date (docs/follow.md)."""
