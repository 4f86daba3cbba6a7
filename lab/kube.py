"""A minimal Kubernetes client on asyncio: list, watch and merge patch, and nothing more."""

from __future__ import annotations

import asyncio
import json
from typing import Any, AsyncIterator, Callable, Protocol

from .kubeconfig import Connection

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 30.0
WATCH_SECONDS = 240
LINE_LIMIT = 16 * 1024 * 1024  # one watch event


class KubeError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text[:200]}")
        self.status = status


class KubeClient:
    """One connection per request: the lab asks seldom, and a watch lasts for minutes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, path: str, query: str = "") -> dict[str, Any]:
        # resourceVersion=0: from the API server's cache, which is cheap; a simulated machine can bear old news.
        async with asyncio.timeout(REQUEST_SECONDS):
            return await self._json("GET", f"{path}?resourceVersion=0{query}")

    async def merge_patch(self, path: str, patch: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.timeout(REQUEST_SECONDS):
            return await self._json("PATCH", f"{path}?fieldManager=lab", json.dumps(patch).encode(),
                                    "application/merge-patch+json")

    async def watch(self, path: str, resource_version: str, query: str = "") -> AsyncIterator[dict[str, Any]]:
        target = (f"{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}"
                  f"&resourceVersion={resource_version}{query}")
        reader, writer = await self._send("GET", target)
        try:
            status, headers = await self._head(reader)
            if status != 200:
                raise KubeError(status, (await self._body(reader, headers)).decode(errors="replace"))
            pending = b""
            async for chunk in self._chunks(reader, WATCH_SECONDS + 30):
                pending += chunk
                *lines, pending = pending.split(b"\n")
                if len(pending) > LINE_LIMIT:
                    raise KubeError(0, "a watch event is too large")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
        finally:
            writer.close()

    async def _json(self, method: str, target: str, body: bytes = b"", content_type: str = "") -> dict[str, Any]:
        reader, writer = await self._send(method, target, body, content_type)
        try:
            status, headers = await self._head(reader)
            data = await self._body(reader, headers)
        finally:
            writer.close()
        if status >= 300:
            raise KubeError(status, data.decode(errors="replace"))
        return json.loads(data)

    async def _send(self, method: str, target: str, body: bytes = b"",
                    content_type: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        c = self._connection
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(c.host, c.port, ssl=c.tls)
        head = [f"{method} {target} HTTP/1.1", f"Host: {c.host}:{c.port}", "Accept: application/json",
                "User-Agent: kwatt-lab", "Connection: close"]
        if c.token:
            head.append(f"Authorization: Bearer {c.token}")
        if body:
            head += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + body)
        return reader, writer

    @staticmethod
    async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(REQUEST_SECONDS):
            text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = text.split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return int(first.split()[1]), headers

    async def _body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join([chunk async for chunk in self._chunks(reader, REQUEST_SECONDS)])
        if "content-length" in headers:
            return await reader.readexactly(int(headers["content-length"]))
        return await reader.read()

    @staticmethod
    async def _chunks(reader: asyncio.StreamReader, silence_seconds: float) -> AsyncIterator[bytes]:
        while True:
            async with asyncio.timeout(silence_seconds):
                size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
                data = await reader.readexactly(size + 2)
            if size == 0:
                return
            yield data[:-2]


class Sink(Protocol):
    def replace(self, objects: list[dict[str, Any]]) -> None: ...
    def set(self, item: dict[str, Any]) -> None: ...
    def remove(self, item: dict[str, Any]) -> None: ...


async def reflect(client: KubeClient, path: str, query: str, sink: Sink, failed: Callable[[str], None]) -> None:
    """Keeps the sink equal to what the API server has, until cancelled. Any failure leads to a new list, later."""
    pause = 0.25
    while True:
        try:
            listed = await client.list(path, query)
            sink.replace(listed.get("items") or [])
            version = listed["metadata"]["resourceVersion"]
            pause = 0.25
            while True:
                version = await _follow(client, path, query, version, sink)
        except (OSError, TimeoutError, EOFError, ValueError, KeyError, KubeError) as error:
            failed(f"{path}: {type(error).__name__}: {error}")
        await asyncio.sleep(pause)
        pause = min(5.0, pause * 2)


async def _follow(client: KubeClient, path: str, query: str, version: str, sink: Sink) -> str:
    """One watch to its regular end; the version to go on from."""
    async for event in client.watch(path, version, query):
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            raise KubeError(int(item.get("code", 0)), str(item.get("message", "")))
        version = item["metadata"]["resourceVersion"]
        if kind == "DELETED":
            sink.remove(item)
        elif kind != "BOOKMARK":
            sink.set(item)
    return version
