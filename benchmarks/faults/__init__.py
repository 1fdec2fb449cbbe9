"""A campaign of faults: kills, damage and failing calls; see __main__."""
