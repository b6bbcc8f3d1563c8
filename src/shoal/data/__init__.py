"""Data and what is public about it: records, one pass, cell rules, keys, counts, assignments."""
