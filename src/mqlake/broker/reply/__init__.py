"""Request and reply: an answer finds the client that waits for it."""
