from tests.service.conftest import client, tiny_client, tiny_home
from tests.storage.conftest import synced_to_disk

__all__ = ["client", "synced_to_disk", "tiny_client", "tiny_home"]
