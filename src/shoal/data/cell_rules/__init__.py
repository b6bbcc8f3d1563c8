"""Cell rules: how the public columns of a record say which cell it belongs to."""
