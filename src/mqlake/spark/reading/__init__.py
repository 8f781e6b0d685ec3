"""What data sources share: filters, limits, shares, and the toolkit of their readers."""
