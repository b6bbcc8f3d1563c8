"""How the noise is shared among the cells, one method a file."""
