"""What the clients do."""
