"""What sources share: what a source is, conditions, limits, shares, and parsing of options."""
