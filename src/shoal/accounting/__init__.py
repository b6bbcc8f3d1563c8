"""What a release costs, and who keeps the books."""
