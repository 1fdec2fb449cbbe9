"""Compare: features → document kernel, query → kernel row."""
