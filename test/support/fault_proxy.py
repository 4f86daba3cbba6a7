"""A fault injector in front of a real kube-apiserver: terminates TLS, passes everything on, and breaks what it is told to.

    proxy = FaultProxy(bed.port, bed.ca_file, *bed.issue_server_cert("proxy"))
    proxy.start()                          # a program's kubeconfig names proxy.url
    proxy.arm([Fault.parse("done-500@3")], seed=7)
    ...
    proxy.heal()

The server's answers are its own; what is injected stands in support/faults.py, and .records tells
request by request what was made of it.
"""
import asyncio
import json
import random
import ssl
import threading
import time
from dataclasses import dataclass, field

from support import http_messages as http
from support.faults import OUTSIDE, READ
from support.watch_pipe import WatchPipe, expired

UNCOUNTED = ("leases", "events", "tokenreviews", "subjectaccessreviews")
MUTATING = ("POST", "PUT", "PATCH", "DELETE")
START_SECONDS = 30


@dataclass
class Record:
    """One request as it came, and what was made of it."""
    time: float           # wall clock, on arrival
    sender: str           # FaultProxy.sender when its connection was made
    method: str
    path: str
    query: dict
    plural: str
    name: str
    subresource: str
    index: int = 0        # of a counted request since arm(), from 1
    body: dict = field(default_factory=dict)
    status: int = 0       # the server's; 0: it was not asked, or did not answer
    fault: str = ""
    whole: bool = False   # a list was delivered whole, its last page

    @property
    def mutating(self):
        return self.method in MUTATING

    @property
    def counted(self):
        return self.mutating and self.plural not in UNCOUNTED


def place(path):
    """(plural, name, subresource) of an API path."""
    parts = [part for part in path.split("/") if part]
    parts = parts[2:] if parts[:1] == ["api"] else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    return tuple((parts + ["", "", ""])[:3])


def status_body(code, reason, message, retry_after=None):
    details = {"retryAfterSeconds": retry_after} if retry_after else {}
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
                       "reason": reason, "message": f"{message} (injected fault)", "details": details}).encode()


REFUSALS = {"refuse-409": (409, "Conflict"), "refuse-429": (429, "TooManyRequests"),
            "refuse-500": (500, "InternalError"), "refuse-503": (503, "ServiceUnavailable"),
            "done-500": (500, "InternalError"), "done-504": (504, "Timeout")}


def refusal(kind):
    code, reason = REFUSALS[kind]
    headers = [("Content-Type", "application/json")]
    if code == 429:
        headers.append(("Retry-After", "1"))
    return http.Response(code, headers, status_body(code, reason, "refused", 1 if code == 429 else None))


class Reset(Exception):
    """The connection to the client is cut without a word."""


class FaultProxy:
    """Runs on a thread of its own; every public method may be called from any thread.

    kill       called with no argument where a fault says so: kills the program behind this proxy at once
    outside    called with a Fault of support.faults.OUTSIDE and the name of the object that the request which set it
               off was about, on another thread
    """

    def __init__(self, upstream_port, ca_file, cert_file, key_file):
        self._upstream_port = upstream_port
        self._server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server_tls.load_cert_chain(str(cert_file), str(key_file))
        self._client_tls = ssl.create_default_context(cafile=str(ca_file))
        self.kill, self.outside = lambda: None, lambda fault, name: None
        self.sender = ""
        self.records = []
        self._faults, self._left = [], {}
        self._count, self._fired = 0, set()
        self._random = random.Random(0)
        self._pipes, self._connections = set(), set()
        self._past, self._list_paths = {}, set()   # path → (resourceVersion, body) for `stale`
        self._once = {}                            # fault → resources it has struck already
        self.port = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)

    # ---- for any thread -----------------------------------------------------------------------------------

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def start(self):
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise TimeoutError("the fault proxy did not start")

    def stop(self):
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def arm(self, faults, seed=0, past=None):
        """From now on these faults; counting starts at 1 anew. `past`: path → body of a list, for `stale`."""
        def arm():
            self._clear()
            self._faults, self._random = list(faults), random.Random(seed)
            self._left = {fault: fault.count for fault in faults}
            self._past = {path: (int(json.loads(body)["metadata"]["resourceVersion"]), body)
                          for path, body in (past or {}).items()}
            for fault in self._faults:
                if fault.at == 0 and fault.kind not in REFUSALS:
                    self._begin(fault)
        self._call(arm)

    def heal(self):
        """No fault any more; what was held back is let go."""
        self._call(self._clear)

    def fired(self):
        """The faults that have struck."""
        return self._call(lambda: set(self._fired))

    def counted(self):
        """Counted requests since arm()."""
        return self._call(lambda: self._count)

    def list_paths(self):
        """Collections that were listed through this proxy."""
        return self._call(lambda: set(self._list_paths))

    def forget(self):
        """Drops the records but for those of the present sender that tell what it has: its lists, and its lease."""
        def forget():
            mine = [r for r in self.records if r.sender == self.sender]
            leases = [r for r in mine if r.plural == "leases" and r.mutating and 200 <= r.status < 300]
            self.records[:] = [r for r in mine if r.whole] + leases[-1:]
        self._call(forget)

    def _call(self, action):
        async def run():
            return action()
        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(START_SECONDS)

    # ---- life ---------------------------------------------------------------------------------------------

    def _run(self):
        asyncio.run(self._serve())

    async def _serve(self):
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._server_tls,
                                            limit=http.STREAM_LIMIT)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _clear(self):
        self._faults, self._left, self._past, self._once = [], {}, {}, {}
        self._count, self._fired = 0, set()
        for pipe in self._pipes:
            pipe.heal()

    # ---- one connection -----------------------------------------------------------------------------------

    async def _accept(self, reader, writer):
        task = asyncio.current_task()
        self._connections.add(task)
        upstream = None
        try:
            upstream = await asyncio.open_connection("127.0.0.1", self._upstream_port, ssl=self._client_tls,
                                                     server_hostname="127.0.0.1", limit=http.STREAM_LIMIT)
            sender = self.sender
            while (request := await http.read_request(reader)) is not None:
                if not await self._exchange(request, sender, writer, upstream):
                    break
        except Reset:
            writer.transport.abort()
        except (OSError, EOFError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError,
                asyncio.CancelledError):
            pass  # one of the two sides is gone
        finally:
            self._connections.discard(task)
            writer.close()
            if upstream:
                upstream[1].close()

    async def _exchange(self, request, sender, writer, upstream):
        """True: the connection goes on."""
        plural, name, subresource = place(request.path)
        record = Record(time.time(), sender, request.method, request.path, request.query, plural, name, subresource)
        self.records.append(record)
        if record.mutating:
            record.body = _decoded(request.body)
            return await self._change(request, record, writer, upstream)
        if record.query.get("watch"):
            await self._watch(request, record, writer, upstream)
            return False
        if name or not plural:
            response = await self._ask(request, record, upstream)
        else:
            response = await self._list(request, record, upstream)
        writer.write(response.encode())
        await writer.drain()
        record.whole = not name and response.status == 200 and not _continue_of(response.body)
        return True

    async def _ask(self, request, record, upstream, target=None):
        upstream[1].write(request.encode(target))
        response = await http.read_response(upstream[0])
        record.status = response.status
        return response

    # ---- requests that change something -------------------------------------------------------------------

    async def _change(self, request, record, writer, upstream):
        if record.counted:
            self._count += 1
            record.index = self._count
        for fault in list(self._faults):
            if fault not in self._fired and (fault.kind in READ or fault.kind in OUTSIDE) and self._due(fault, record):
                self._begin(fault, record.name)
        fault = self._striking(record)
        kind = record.fault = fault.kind if fault else ""
        if kind == "kill-before":
            self.kill()
            raise Reset
        if kind.startswith("refuse-"):
            writer.write(refusal(kind).encode())
            return True
        if kind in ("drop", "hang"):
            await asyncio.sleep(fault.value)
            raise Reset
        response = await self._ask(request, record, upstream)
        if kind == "kill-between":
            self.kill()
            raise Reset
        if kind in ("lost", "done-hang"):
            await asyncio.sleep(fault.value)
            raise Reset
        if kind in ("done-500", "done-504"):
            response = refusal(kind)
        if kind == "truncate":
            response.body = response.body[:len(response.body) // 2]
        data = response.encode()
        if kind == "half":
            writer.write(data[:len(data) - len(response.body) // 2])
            await writer.drain()
            raise Reset
        writer.write(data)
        await writer.drain()
        if kind == "kill-after":
            self.kill()
            raise Reset
        return True

    def _due(self, fault, record):
        if isinstance(fault.at, str):
            operation = (record.body.get("status") or {}).get("operation") or {}
            return record.plural == "nodepowers" and operation.get("step") == fault.at
        return self._count >= fault.at and record.index > 0

    def _striking(self, record):
        """The request fault that strikes this request, if any."""
        for fault in self._faults:
            if fault.kind in READ or fault.kind in OUTSIDE or self._left[fault] == 0:
                continue
            if fault.resource and fault.resource != record.plural or not fault.resource and not record.counted:
                continue
            begun = fault in self._fired
            if begun or (self._count >= fault.at if isinstance(fault.at, int) else self._due(fault, record)):
                self._left[fault] -= 1
                self._fired.add(fault)
                return fault
        return None

    # ---- faults that begin by themselves ------------------------------------------------------------------

    def _begin(self, fault, name=""):
        self._fired.add(fault)
        if fault.kind in OUTSIDE:
            self._loop.run_in_executor(None, self.outside, fault, name)
        elif fault.kind in ("delay", "coalesce"):
            for pipe in self._pipes:
                setattr(pipe, fault.kind, fault.value)
        elif fault.kind in ("cut", "gone-status"):
            for pipe in list(self._pipes):
                pipe.cut()
        elif fault.kind == "silent":
            for pipe in list(self._pipes):
                pipe.fall_silent(fault.value)
        elif fault.kind in ("gone-event", "gone-page", "shuffle", "cut-list"):
            for pipe in list(self._pipes):
                pipe.expire()

    def _active(self, kind):
        return next((fault for fault in self._faults if fault.kind == kind and fault in self._fired), None)

    def _once_per_resource(self, kind, plural):
        """True where this kind strikes this resource for the first time."""
        fault = self._active(kind)
        if not fault or plural in self._once.setdefault(fault, set()):
            return False
        self._once[fault].add(plural)
        return True

    # ---- lists and watches --------------------------------------------------------------------------------

    async def _list(self, request, record, upstream):
        query = record.query
        if "limit" in query:
            self._list_paths.add(request.path)
        target = None
        if self._active("gone-page") and ("limit" in query or "continue" in query):
            if "continue" in query and self._once_per_resource("gone-page", record.plural):
                record.fault = "gone-page"
                return http.Response(410, [("Content-Type", "application/json")],
                                     status_body(410, "Expired", "the provided continue parameter is too old"))
            # Lists at "any version" come from the watch cache in one piece; without a version they are paged.
            pairs = {**query, "limit": "2"}
            if pairs.get("resourceVersion") == "0":
                del pairs["resourceVersion"]
            target = request.path + "?" + http.encode_query(pairs)
        past = self._past.get(request.path)
        if past and self._active("stale") and 0 <= int(query.get("resourceVersion") or -1) <= past[0]:
            record.fault = "stale"
            return http.Response(200, [("Content-Type", "application/json")], past[1])
        response = await self._ask(request, record, upstream, target)
        if response.status == 200 and self._active("shuffle"):
            document = json.loads(response.body)
            self._random.shuffle(document["items"])
            response.body, record.fault = json.dumps(document).encode(), "shuffle"
        if response.status == 200 and self._once_per_resource("cut-list", record.plural):
            response.body, record.fault = response.body[:len(response.body) // 2], "cut-list"
        return response

    async def _watch(self, request, record, writer, upstream):
        if self._once_per_resource("gone-status", record.plural):
            record.fault = "gone-status"
            writer.write(http.Response(410, [("Content-Type", "application/json")],
                                       expired()).encode(keep_alive=False))
            await writer.drain()
            return
        upstream[1].write(request.encode())
        head = await http.read_response_head(upstream[0])
        record.status = head.status
        if head.status != 200:
            head.body = b"".join([piece async for piece in http.chunks(upstream[0], head.headers)])
            writer.write(head.encode(keep_alive=False))
            await writer.drain()
            return
        pipe = WatchPipe(writer)
        for kind in ("delay", "coalesce"):
            if fault := self._active(kind):
                setattr(pipe, kind, fault.value)
        past = self._past.get(request.path)
        stale = self._active("stale")
        if past and stale and int(record.query.get("resourceVersion") or 0) <= past[0]:
            pipe.delay = stale.value
        self._pipes.add(pipe)
        try:
            await pipe.run(head, http.chunks(upstream[0], head.headers))
        finally:
            self._pipes.discard(pipe)


def _decoded(body):
    try:
        document = json.loads(body) if body else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {"patch": document}


def _continue_of(body):
    try:
        return json.loads(body).get("metadata", {}).get("continue", "")
    except ValueError:
        return "the list ends in the middle"
