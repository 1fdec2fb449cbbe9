"""Core: settings, threads and processes, progress."""
