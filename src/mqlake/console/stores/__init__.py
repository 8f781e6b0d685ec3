"""What a store directory contains, as pages show it: files, plans, lake tables, archives."""
