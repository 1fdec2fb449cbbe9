"""Files people have, as documents: one module a kind, and what all of them give."""
