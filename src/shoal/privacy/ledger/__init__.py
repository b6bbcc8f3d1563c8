"""The ledger of one data set: a file that outlives processes and never exceeds its budget."""
