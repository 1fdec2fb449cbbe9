"""Explanations: a score → the parts it is the sum of, and what each is made of."""
