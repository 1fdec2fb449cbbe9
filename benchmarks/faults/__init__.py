"""A campaign of faults: kills, damage, a full disk, load, slow sockets and forks; see __main__."""
