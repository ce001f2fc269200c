"""A compiled model as one page: `data` holds what it says, `page` writes it, the rest collects."""
