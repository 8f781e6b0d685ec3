"""Remove what a store need not keep."""
