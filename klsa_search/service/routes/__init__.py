"""The endpoints of the HTTP API: one router in each module."""
