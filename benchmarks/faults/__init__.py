"""A campaign of faults: kills, damage, a full disk, load and slow sockets; see __main__."""
