"""Check logs, and indexes against logs."""
