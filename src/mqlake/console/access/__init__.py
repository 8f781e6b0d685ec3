"""Who may use the console: sessions, roles, checks of each change, and the audit line."""
