"""The guard of the service, and what it checks: hosts, API keys, rates, bodies."""
