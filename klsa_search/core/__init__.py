"""Core: settings, threads and processes, compiling, progress."""
