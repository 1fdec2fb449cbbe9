"""Golden answers: what six small indexes answered, compared with what they answer now."""
