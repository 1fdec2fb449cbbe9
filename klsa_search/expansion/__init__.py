"""Expand: spectrum → the document expansion D, the latent space, coverage by neighbours."""
