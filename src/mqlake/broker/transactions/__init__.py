"""Transactions of producers: how they end, and the questions to those that do not answer."""
