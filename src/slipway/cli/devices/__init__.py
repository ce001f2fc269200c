"""Commands that make devices of machines and pages, and hand them out."""
