"""Trace messages of producers and consumers, for `mqadmin queryMsgTraceById`."""
