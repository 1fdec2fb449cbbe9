"""Fold in: documents that come after a build, by the statistics it was built with."""
