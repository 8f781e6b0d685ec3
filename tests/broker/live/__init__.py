"""What is seen of each setting when it changes in a running broker."""
