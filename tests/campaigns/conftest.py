from tests.service.conftest import client, tiny_home

__all__ = ["client", "tiny_home"]
