"""Messages that reach consumers later: when they are due, when they are committed."""
