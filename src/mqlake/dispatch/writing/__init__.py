"""Messages to records: many in one call, or one after the other."""
