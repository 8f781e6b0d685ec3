"""Answer questions about a store that is being written."""
