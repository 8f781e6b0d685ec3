"""Copy a store's closed segments and derived files to another place, and check the copy."""
