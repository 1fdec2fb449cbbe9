"""What the container starts, with an index directory that is empty."""

import json
import shutil
from urllib.request import urlopen

import pytest

from tests.conftest import ROOT
from tests.support.services import served_by
from tests.support.waiting import PATIENCE

pytestmark = [
    pytest.mark.smoke,
    pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell"),
]


def test_entrypoint_serves_an_empty_folder_until_sigterm(tmp_path):
    command = ["sh", str(ROOT / "docker" / "entrypoint.sh")]
    with served_by(command, tmp_path, KLSA_HOME=str(tmp_path)) as service:
        with urlopen(f"{service.address}/health", timeout=PATIENCE) as answer:
            assert json.load(answer)["indexes"] == []
        code, printed = service.stop()
    assert code == 0
    assert "Traceback" not in printed
