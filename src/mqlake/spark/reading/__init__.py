"""What data sources share: filters, limits, shares, and tools of their readers."""
