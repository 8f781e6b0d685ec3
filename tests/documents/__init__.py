"""Pages, help texts and links: what a reader meets first."""
