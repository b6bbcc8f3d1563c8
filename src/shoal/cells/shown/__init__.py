"""Makes tables, texts and warnings of plans and releases."""
