"""The HTTP service over the indexes of a directory."""
