"""Messages: found within a budget, shown as text, JSON, typed values or bytes, and traced."""
