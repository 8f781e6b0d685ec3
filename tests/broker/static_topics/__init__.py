"""Static topics on one broker, and on two with a name server."""
