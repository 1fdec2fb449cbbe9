"""Weigh: terms → counts → features."""
