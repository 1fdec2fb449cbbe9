"""Suggestions: completions of typed text."""
