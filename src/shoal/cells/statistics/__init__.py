"""What can be released of a cell, one statistic a file."""
