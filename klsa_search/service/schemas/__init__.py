"""Request and response models, size limits and errors of the HTTP API."""
