"""Pop messages, and acknowledge them or change their invisible time."""
