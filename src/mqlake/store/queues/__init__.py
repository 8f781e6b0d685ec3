"""The consume queues of a store: entries, searches by time; read, or owned and written."""
