"""Records as consumers receive them: bodies decompressed, and inner batches split."""
