"""Every random draw, one mechanism a file."""
