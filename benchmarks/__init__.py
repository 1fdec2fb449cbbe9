"""Side-by-side runs: time and memory, and what speed costs in quality, each printing a table."""
