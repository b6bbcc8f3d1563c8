"""What a user may contribute: caps, arrays of records, suppressed users."""
