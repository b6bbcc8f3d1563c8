"""The figures of the papers, one study a file."""
