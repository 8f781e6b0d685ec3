"""Groups of consumers that are of Java and of Python, and come and go."""
