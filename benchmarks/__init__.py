"""Side-by-side runs: time, memory and ranking, each printing a table."""
