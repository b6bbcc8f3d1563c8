"""What comes in: records, cell rules, the lattice of values, the occupancy."""
