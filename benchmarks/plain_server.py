"""The smallest search service, which klsa-serve is compared with: Starlette around `Index.search`.

python -m benchmarks.plain_server INDEX
"""

import argparse
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from klsa_search import open_index


def main() -> None:
    """Serve the index at a free port of 127.0.0.1, as klsa-serve announces it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", help="folder of the index")
    index = open_index(parser.parse_args().index)
    index.warm_up()

    async def search(request: Request) -> JSONResponse:
        asked = request.query_params
        facets = asked["facets"].split(",") if "facets" in asked else ()
        results = index.search(asked["q"], int(asked.get("k", 10)),
                               highlight="highlight" in asked, facets=facets)  # fmt: skip
        hits = [{"id": hit.id, "score": hit.score, "title": hit.title, "snippet": hit.snippet,
                 "highlight": {name: {"text": one.text, "marks": one.marks, "html": one.html}
                               for name, one in (hit.highlight or {}).items()}}
                for hit in results]  # fmt: skip
        counts = {name: facet.values for name, facet in results.facets.items()}
        return JSONResponse({"total": results.total, "hits": hits, "facets": counts})

    app = Starlette(routes=[Route("/search", search)])
    # asyncio sends at once only from sockets that name their protocol.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    print(f"Serving at http://127.0.0.1:{listener.getsockname()[1]} ", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run([listener])


if __name__ == "__main__":
    main()
