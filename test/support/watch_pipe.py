"""One watch on its way through the fault proxy: frames come in, and go out late, thinned out, or not at all."""
import asyncio
import json
import time


def expired():
    """The Status of a watch that starts from too old a version, as kube-apiserver words it."""
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired",
                       "code": 410, "message": "too old resource version (injected fault)"}).encode()


def last_of_each(frames):
    """Of several changes of one object only the last, as somebody sees it who was away meanwhile. A bookmark in the
    middle goes; what came and went in between leaves no trace."""
    kept = {}  # uid → (first type, frame, type)
    bookmark = None
    for frame in frames:
        document = json.loads(frame)
        bookmark = frame if document["type"] == "BOOKMARK" else None
        if document["type"] in ("BOOKMARK", "ERROR"):
            continue
        uid = document["object"]["metadata"]["uid"]
        first = kept.pop(uid, (document["type"],))[0]
        kept[uid] = (first, document)
    out = []
    for first, document in kept.values():
        if first == "ADDED" and document["type"] == "DELETED":
            continue
        if first == "ADDED":
            document["type"] = "ADDED"
        out.append(json.dumps(document).encode() + b"\n")
    return out + ([bookmark] if bookmark else [])


class WatchPipe:
    """Lives on the proxy's event loop."""

    def __init__(self, writer):
        self.delay = 0.0      # seconds
        self.coalesce = 0.0   # seconds
        self._writer = writer
        self._queue = asyncio.Queue()  # (when it may leave, frame)
        self._silent = False
        self._ended = asyncio.Event()

    # ---- what may be done to it ---------------------------------------------------------------------------

    def cut(self):
        """The connection is reset."""
        if not self._ended.is_set():
            self._ended.set()
            self._writer.transport.abort()

    def expire(self):
        """The server says 410 inside the stream, and ends it."""
        frame = b'{"type":"ERROR","object":' + expired() + b"}\n"
        if not self._silent and not self._ended.is_set():
            self._writer.write(_chunk(frame) + b"0\r\n\r\n")
        self._ended.set()

    def fall_silent(self, seconds):
        """Nothing comes through for so long; then the connection is reset."""
        self._silent = True
        asyncio.get_running_loop().call_later(seconds, self.cut)

    def heal(self):
        self.delay = self.coalesce = 0.0
        if self._silent:
            self.cut()

    # ---- what it does -------------------------------------------------------------------------------------

    async def run(self, head, pieces):
        """Until either side ends."""
        lines = "".join(f"{n}: {v}\r\n" for n, v in head.headers
                        if n.lower() not in ("transfer-encoding", "content-length", "connection"))
        self._writer.write(f"HTTP/1.1 200 -\r\n{lines}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode())
        await self._writer.drain()
        tasks = [asyncio.create_task(job) for job in (self._read(pieces), self._write(), self._ended.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await self._drained()
        finally:
            self._ended.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _drained(self):
        try:
            await self._writer.drain()
        except OSError:
            pass

    async def _read(self, pieces):
        rest = b""
        async for piece in pieces:
            *frames, rest = (rest + piece).split(b"\n")
            for frame in frames:
                self._queue.put_nowait((time.monotonic() + self.delay, frame + b"\n"))
        self._queue.put_nowait((time.monotonic() + self.delay, None))
        await asyncio.Event().wait()  # the writer ends the watch when everything is out

    async def _write(self):
        while True:
            due, frame = await self._queue.get()
            await self._until(due)
            frames = [frame]
            if self.coalesce and frame is not None:
                await self._until(due + self.coalesce)
                while not self._queue.empty() and frames[-1] is not None:
                    frames.append(self._queue.get_nowait()[1])
                ends = frames[-1] is None
                frames = last_of_each([f for f in frames if f is not None]) + ([None] if ends else [])
            for each in frames:
                if each is None:
                    if not self._silent:
                        self._writer.write(b"0\r\n\r\n")
                    return
                if not self._silent:
                    self._writer.write(_chunk(each))
            await self._writer.drain()

    async def _until(self, moment):
        """Sleeps, but no longer than a heal() allows."""
        while (left := moment - time.monotonic()) > 0 and (self.delay or self.coalesce):
            await asyncio.sleep(min(left, 0.1))


def _chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)
