"""What producers and consumers note of each message, for `mqadmin queryMsgTraceById`."""
