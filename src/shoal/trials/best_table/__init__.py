"""The unbiased randomiser of least variance at a privacy loss, as a table of whole numbers."""
