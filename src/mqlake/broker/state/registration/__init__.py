"""What name servers are told, and what they tell of other brokers."""
