"""Generators of clients accept /openapi.json: their code has correct types, and it works."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from klsa_search.service.admission import Writes
from klsa_search.service.open_indexes import OpenIndexes

from .sockets import serving

pytestmark = pytest.mark.external

PYTHON_OPTIONS = """
content_type_overrides:
  application/x-ndjson: application/octet-stream
"""
PYTHON_WALK = """
import io
import sys

from klsa_search_client import AuthenticatedClient
from klsa_search_client.api.default import (
    add_documents, create_index, delete_index, patch_document, search_index, sync_index,
)
from klsa_search_client.models import (
    DocumentChanges, IndexBody, IndexBodySettings, NewDocument, SearchAnswer, SearchRequest,
    SearchRequestBoostsType1, SyncAnswer, WriteAnswer,
)
from klsa_search_client.types import File

client = AuthenticatedClient(base_url=sys.argv[1], token="not-needed")
settings = IndexBodySettings.from_dict({"fields": ["price:number"]})
create_index.sync(client=client, body=IndexBody(name="shop", settings=settings))
bikes = [
    {"id": "1", "title": "Red bicycle", "price": 300},
    {"id": "2", "title": "Blue bicycle", "price": 700},
]
documents = [NewDocument.from_dict(each) for each in bikes]
added = add_documents.sync("shop", client=client, body=documents)
assert isinstance(added, WriteAnswer)
assert added.added == 2
request = SearchRequest(
    q="bicycle",
    filter_="price < 500",
    facets=["price"],
    boosts=SearchRequestBoostsType1.from_dict({"title": 2.0}),
)
found = search_index.sync("shop", client=client, body=request)
assert isinstance(found, SearchAnswer)
assert [hit.id for hit in found.hits] == ["1"]
changes = DocumentChanges.from_dict({"price": 400})
patched = patch_document.sync("shop", "2", client=client, body=changes)
assert isinstance(patched, WriteAnswer)
found = search_index.sync("shop", client=client, body=request)
assert isinstance(found, SearchAnswer)
assert found.total == 2
lines = File(io.BytesIO(b'{"id": "3", "title": "Green bicycle"}'))
synced = sync_index.sync("shop", client=client, body=lines, max_delete="100%")
assert isinstance(synced, SyncAnswer)
assert synced.deleted == 2
delete_index.sync("shop", client=client)
print("done")
"""

TYPESCRIPT_WALK = """
import createClient from "openapi-fetch";
import * as sdk from "./hey";
import { client } from "./hey/client.gen";
import type { paths } from "./schema";

const baseUrl = process.argv[2];
const check = (fine: boolean) => {
  if (!fine) throw new Error("unexpected answer");
};
async function withOpenapiTypescript() {
  const api = createClient<paths>({ baseUrl });
  await api.POST("/indexes", { body: { name: "shop", settings: { fields: ["price:number"] } } });
  const path = { name: "shop" };
  const added = await api.POST("/indexes/{name}/documents", {
    params: { path },
    body: [
      { id: "1", title: "Red bicycle", price: 300 },
      { id: "2", title: "Blue bicycle", price: 700 },
    ],
  });
  check(added.data?.added === 2);
  const found = await api.POST("/indexes/{name}/search", {
    params: { path },
    body: { q: "bicycle", filter: "price < 500", facets: ["price"], boosts: { title: 2 } },
  });
  check(found.data?.hits[0].id === "1" && found.data.facets?.price.values[0].value === 300);
}
async function withHeyApi() {
  client.setConfig({ baseUrl });
  const options = { path: { name: "shop" }, throwOnError: true as const };
  await sdk.patchDocument({ path: { name: "shop", id: "2" }, body: { price: 400 } });
  const body = { q: "bicycle", filter: "price < 500" };
  const found = await sdk.searchIndex({ ...options, body });
  check(found.data.total === 2);
  const lines = new Blob(['{"id": "3", "title": "Green bicycle"}']);
  const query = { max_delete: "100%" };
  const synced = await sdk.syncIndex({ ...options, query, body: lines });
  check(synced.data.deleted === 2);
  const deleted = await sdk.deleteIndex(options);
  check(deleted.data.name === "shop");
  console.log("done");
}
withOpenapiTypescript().then(withHeyApi);
"""
NODE_PACKAGES = (
    "openapi-typescript",
    "@hey-api/openapi-ts",
    "openapi-fetch",
    "typescript",
    "esbuild",
    "@types/node",
)


@pytest.fixture
def url(tmp_path, patient_service):
    home = tmp_path / "home"
    home.mkdir()
    with (
        OpenIndexes(home, interval=0) as open_indexes,
        serving(open_indexes, writes=Writes()) as service,
    ):
        host, port = service.address
        url = f"http://{host}:{port}"
        (tmp_path / "openapi.json").write_bytes(httpx.get(f"{url}/openapi.json").content)
        yield url


def run(folder, *command, **variables):
    """Run a program, which must succeed; return what it printed."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_openapi_python_client(url, tmp_path):
    generator = shutil.which("openapi-python-client")
    if generator is None:
        pytest.skip("openapi-python-client is not in PATH: a generator is not installed")
    bin_ = Path(generator).parent
    (tmp_path / "options.yaml").write_text(PYTHON_OPTIONS)
    run(
        tmp_path,
        *(generator, "generate", "--fail-on-warning", "--config", "options.yaml"),
        *("--path", "openapi.json", "--output-path", "generated"),
        PATH=f"{bin_}{os.pathsep}{os.environ['PATH']}",
    )
    generated = tmp_path / "generated"
    (generated / "walk.py").write_text(PYTHON_WALK)
    python = str(bin_ / "python")
    check = ("-m", "mypy", "--strict", "--python-executable", python)
    run(generated, sys.executable, *check, "klsa_search_client", "walk.py")
    assert run(generated, python, "walk.py", url) == "done\n"


def test_typescript_generators(url, tmp_path):
    modules = os.environ.get("KLSA_NODE_MODULES")
    if modules is None:
        names = " ".join(NODE_PACKAGES)
        pytest.skip(f"KLSA_NODE_MODULES does not name a folder with {names}")
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "walk.ts").write_text(TYPESCRIPT_WALK)
    programs = Path(modules) / ".bin"
    printed = run(tmp_path, programs / "openapi-typescript", "openapi.json", "-o", "schema.d.ts")
    printed += run(tmp_path, programs / "openapi-ts", "-i", "openapi.json", "-o", "hey")
    assert "warn" not in printed.lower()
    modern = ("--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler")
    lib = ("--lib", "es2022,dom,dom.iterable")
    run(
        tmp_path,
        programs / "tsc",
        "--strict",
        "--skipLibCheck",
        "--noEmit",
        *modern,
        *lib,
        "walk.ts",
    )
    bundle = ("--bundle", "--platform=node", "--outfile=walk.cjs")
    run(tmp_path, programs / "esbuild", "walk.ts", *bundle)
    assert run(tmp_path, "node", "walk.cjs", url) == "done\n"
