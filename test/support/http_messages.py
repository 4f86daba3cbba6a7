"""HTTP/1.1 messages on asyncio streams, as much of it as kwatt's client and kube-apiserver use between them."""
import asyncio
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

HEAD_LIMIT = 64 * 1024
STREAM_LIMIT = 16 * 1024 * 1024  # the longest line: a watch frame


@dataclass
class Request:
    method: str
    target: str  # as sent
    headers: list  # of (name, value)
    body: bytes

    @property
    def path(self):
        return urlsplit(self.target).path

    @property
    def query(self):
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    def encode(self, target=None):
        kept = [(n, v) for n, v in self.headers
                if n.lower() not in ("content-length", "transfer-encoding", "accept-encoding", "connection")]
        kept.append(("Content-Length", str(len(self.body))))
        return _head(f"{self.method} {target or self.target} HTTP/1.1", kept) + self.body


@dataclass
class Response:
    status: int
    headers: list
    body: bytes = b""

    def encode(self, keep_alive=True):
        kept = [(n, v) for n, v in self.headers
                if n.lower() not in ("content-length", "transfer-encoding", "connection")]
        if self.status != 204:
            kept.append(("Content-Length", str(len(self.body))))
        if not keep_alive:
            kept.append(("Connection", "close"))
        return _head(f"HTTP/1.1 {self.status} -", kept) + self.body


def _head(first, headers):
    return (first + "\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers) + "\r\n").encode("latin-1")


def encode_query(pairs):
    return urlencode(pairs)


def header(headers, name, default=""):
    return next((v for n, v in headers if n.lower() == name), default)


async def _read_head(reader):
    """(first line, headers); None at the orderly end of the connection."""
    try:
        text = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = text.decode("latin-1").split("\r\n")[:-2]
    headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines]
    return first, headers


async def chunks(reader, headers):
    """The pieces of a body, whatever its framing."""
    if header(headers, "transfer-encoding").lower() == "chunked":
        while True:
            size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
            if size == 0:
                while await reader.readuntil(b"\r\n") != b"\r\n":
                    pass  # trailers
                return
            yield await reader.readexactly(size)
            await reader.readexactly(2)
    elif length := int(header(headers, "content-length", "0")):
        yield await reader.readexactly(length)


async def read_request(reader):
    head = await _read_head(reader)
    if head is None:
        return None
    method, target, _ = head[0].split(" ", 2)
    body = b"".join([piece async for piece in chunks(reader, head[1])])
    return Request(method, target, head[1], body)


async def read_response_head(reader):
    head = await _read_head(reader)
    if head is None:
        raise ConnectionResetError("the server has hung up")
    return Response(int(head[0].split(" ", 2)[1]), head[1])


async def read_response(reader):
    response = await read_response_head(reader)
    response.body = b"".join([piece async for piece in chunks(reader, response.headers)])
    return response
