"""Samples that a program itself sends, or logs, at intervals."""
