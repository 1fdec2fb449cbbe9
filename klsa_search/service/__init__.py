"""Serve: the endpoints, a pane of glass over the indexes of a home."""
