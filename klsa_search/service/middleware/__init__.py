"""What a request passes on its way in: names, hosts, keys, limits."""
