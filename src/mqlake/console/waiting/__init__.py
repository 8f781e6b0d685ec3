"""Messages that wait: for their time, for the end of a transaction, or for an acknowledgement."""
