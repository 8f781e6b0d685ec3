"""Lake tables: batches of data files, each committed once."""
