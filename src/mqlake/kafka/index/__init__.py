"""The indexes of a segment, and which batches get entries."""
