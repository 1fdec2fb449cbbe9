"""How well the default ranks, and what that rests on: every claim of docs/effectiveness.md."""
