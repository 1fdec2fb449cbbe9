"""ASGI middleware: request IDs, hosts, API keys, limits."""
