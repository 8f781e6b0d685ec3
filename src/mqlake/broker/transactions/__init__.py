"""Transactions of producers: their ends, and the checks of producers that do not answer."""
