"""Rebuild, verify and export as pure tasks over splits of the commit log, for any engine."""
