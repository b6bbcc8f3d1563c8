"""What a user may contribute."""
