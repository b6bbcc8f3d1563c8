"""Tables, texts and warnings of plans and releases."""
