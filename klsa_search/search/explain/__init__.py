"""Explanations: how scores are computed."""
