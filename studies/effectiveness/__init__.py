"""Measure how well the default ranks: every claim of docs/explanations/effectiveness.md."""
