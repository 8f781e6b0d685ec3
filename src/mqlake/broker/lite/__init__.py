"""Light topics, which this broker does not have."""
