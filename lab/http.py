"""A small HTTP/1.1 server on asyncio: enough for JSON requests from clients on the same machine, with limits."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Awaitable, Callable
from urllib.parse import parse_qs, unquote, urlsplit

HEAD_LIMIT = 16 * 1024
BODY_LIMIT = 64 * 1024
IDLE_SECONDS = 75.0
REQUEST_SECONDS = 15.0  # from the first byte of a request to its last


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes
    peer_port: int = 0  # the client's TCP port

    def json(self) -> dict[str, Any]:
        """The body as an object; anything else is a ValueError."""
        try:
            data = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise ValueError("the body is not JSON") from error
        if not isinstance(data, dict):
            raise ValueError("the body is not a JSON object")
        return data


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    send_bytes: int | None = None  # fault: so many bytes of the answer, then the connection is closed
    claim_bytes: int | None = None  # fault: the Content-Length is a lie, and the rest never comes


Handler = Callable[[Request], Awaitable[Response]]


def json_response(status: int, document: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(status, json.dumps(document).encode() + b"\n", headers=headers or {})


class _BadRequest(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """None at the end of the connection."""
    try:
        async with asyncio.timeout(IDLE_SECONDS):
            first = await reader.readline()
        if not first:
            return None
        async with asyncio.timeout(REQUEST_SECONDS):
            return await _read_rest(first, reader, writer)
    except (asyncio.IncompleteReadError, TimeoutError):
        return None
    except ValueError as error:  # a line beyond the stream's limit
        raise _BadRequest(431, "header too large") from error


async def _read_rest(first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request:
    parts = first.decode("latin-1").split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise _BadRequest(400, "not an HTTP/1.1 request")
    headers: dict[str, str] = {}
    size = len(first)
    while (line := await reader.readline()) not in (b"\r\n", b"\n"):
        size += len(line)
        if not line or size > HEAD_LIMIT:
            raise _BadRequest(431, "header too large or cut off")
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise _BadRequest(400, "a header line without a colon")
        headers[name.strip().lower()] = value.strip()
    if "transfer-encoding" in headers:
        raise _BadRequest(411, "send a Content-Length")
    length = headers.get("content-length", "0")
    if not length.isdigit():
        raise _BadRequest(400, "Content-Length is not a number")
    if int(length) > BODY_LIMIT:
        raise _BadRequest(413, f"the body is over {BODY_LIMIT} bytes")
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await reader.readexactly(int(length))
    target = urlsplit(parts[1])
    query = {key: values[-1] for key, values in parse_qs(target.query, keep_blank_values=True).items()}
    peer = writer.get_extra_info("peername")
    return Request(parts[0], unquote(target.path), query, headers, body, peer[1] if peer else 0)


def _encode(response: Response, method: str, keep_alive: bool) -> bytes:
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:
        phrase = "Unknown"
    headers = dict(response.headers)
    if response.status != 204:
        headers["Content-Length"] = str(response.claim_bytes or len(response.body))
        if response.body:
            headers["Content-Type"] = response.content_type
    headers["Connection"] = "keep-alive" if keep_alive else "close"
    head = f"HTTP/1.1 {response.status} {phrase}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
    return head.encode("latin-1") + (b"" if method == "HEAD" or response.status in (204, 304) else response.body)


async def _connection(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    keep_alive = True
    while keep_alive:
        method = "GET"
        try:
            request = await _read_request(reader, writer)
            if request is None:
                return
            method = request.method
            keep_alive = request.headers.get("connection", "").lower() != "close"
            response = await handler(request)
        except _BadRequest as error:
            keep_alive = False
            response = json_response(error.status, {"error": str(error)})
        data = _encode(response, method, keep_alive)
        if response.send_bytes is not None:
            data, keep_alive = data[:response.send_bytes], False
        if response.claim_bytes is not None:
            keep_alive = False
        writer.write(data)
        async with asyncio.timeout(REQUEST_SECONDS):
            await writer.drain()


class HttpServer:
    """Listens until stop(); open connections are then closed too."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.host = ""
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, host, port, ssl=self._tls, limit=HEAD_LIMIT,
                                                  ssl_handshake_timeout=10 if self._tls else None)
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await _connection(self._handler, reader, writer)
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # the peer is gone, too slow, or the room is closing: nothing is left to say to it
        finally:
            self._connections.discard(task)
            writer.close()
