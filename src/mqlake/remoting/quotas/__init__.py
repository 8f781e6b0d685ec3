"""What one address, or one user, may use of a server: connections, rates, waiting requests."""
