"""A client of an application in this thread."""

import asyncio
import threading
from typing import Any

import httpx2

_THREAD = threading.local()


class AppClient(httpx2.Client):
    """Sends requests to `app` without a socket, in an event loop of the calling thread.

    `starlette.testclient.TestClient` starts a thread and an event loop for each request, which
    costs more than most requests. It runs no lifespan; tests of the lifespan use
    `TestClient`.

    raise_server_exceptions  whether an internal error is raised here, or is an answer
    """

    def __init__(
        self,
        app: Any,
        *,
        raise_server_exceptions: bool = True,
        client: tuple[str, int] = ("testclient", 50000),
        **options: Any,
    ) -> None:
        self.app = app
        inner = httpx2.ASGITransport(app, raise_server_exceptions, client=client)
        options = {"base_url": "http://testserver", "follow_redirects": True, **options}
        super().__init__(transport=_InThisThread(inner), **options)


class _InThisThread(httpx2.BaseTransport):
    def __init__(self, inner: httpx2.ASGITransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        if not hasattr(_THREAD, "loop"):
            _THREAD.loop = asyncio.new_event_loop()
        return _THREAD.loop.run_until_complete(self._answer(request))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._inner.handle_async_request(request)
        body = b"".join([part async for part in answer.stream])
        return httpx2.Response(
            answer.status_code, headers=answer.headers, stream=httpx2.ByteStream(body)
        )
