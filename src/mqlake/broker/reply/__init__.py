"""Request and reply: pass a reply to the client that waits for it."""
