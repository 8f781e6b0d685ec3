"""Messages that reach consumers later: when they are due, or when they are committed."""
