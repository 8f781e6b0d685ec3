"""What is registered with name servers, and what they report of other brokers."""
