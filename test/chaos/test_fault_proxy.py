"""The fault proxy does to each request what its table says. A stand-in for the API server is behind it here."""
import http.client
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from bed.pki import Authority
from bed.process import wait_until
from support.fault_proxy import FaultProxy
from support.faults import Fault
from support.watch_pipe import last_of_each

NODES = "/api/v1/nodes"


class StandIn(BaseHTTPRequestHandler):
    """Answers a list of two nodes, a watch of what the test puts into .frames, and counts changes."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _answer(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if "watch=1" in self.path:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for frame in self.server.frames:
                data = frame.encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.server.over.wait(10)
            return
        self._answer({"kind": "NodeList", "metadata": {"resourceVersion": "9"},
                      "items": [{"metadata": {"name": n}} for n in "abcdefgh"]})

    def do_PATCH(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.changes += 1
        self._answer({"metadata": {"name": "a", "resourceVersion": "10"}})


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def server(authority):
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, authority.issue_server("stand-in", ["127.0.0.1"])))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.changes, server.frames, server.over = 0, [], threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.over.set()
    server.shutdown()


@pytest.fixture
def proxy(server, authority):
    proxy = FaultProxy(server.server_address[1], authority.ca_file, *authority.issue_server("proxy", ["127.0.0.1"]))
    proxy.start()
    yield proxy
    proxy.stop()


@pytest.fixture
def client(proxy, authority):
    connection = http.client.HTTPSConnection("127.0.0.1", proxy.port, timeout=10,
                                             context=ssl.create_default_context(cafile=str(authority.ca_file)))
    yield connection
    connection.close()


def patch(client, path=NODES + "/a"):
    """(status, body), or None where the connection was reset."""
    try:
        client.request("PATCH", path, b"{}")
        response = client.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        client.close()
        return None


def arm(proxy, *texts, **more):
    proxy.arm([Fault.parse(text) for text in texts], **more)


def test_without_faults_everything_passes(proxy, client, server):
    status, body = patch(client)
    assert status == 200 and json.loads(body)["metadata"]["name"] == "a"
    assert patch(client)[0] == 200 and server.changes == 2
    client.request("GET", NODES + "?limit=500")
    assert len(json.loads(client.getresponse().read())["items"]) == 8
    assert [r.method for r in proxy.records] == ["PATCH", "PATCH", "GET"]
    wait_until(lambda: proxy.records[2].whole, 5, "the proxy to have noted that the answer went out whole")


@pytest.mark.parametrize("kind, answer, carried_out", [
    ("refuse-409", 409, False), ("refuse-429", 429, False), ("refuse-503", 503, False),
    ("done-500", 500, True), ("done-504", 504, True),
    ("drop", None, False), ("lost", None, True), ("half", None, True), ("hang=0.1", None, False),
])
def test_a_request_fault_strikes_the_counted_request_and_no_other(proxy, client, server, kind, answer, carried_out):
    arm(proxy, f"{kind}@2")
    assert patch(client)[0] == 200
    assert patch(client, "/apis/coordination.k8s.io/v1/namespaces/x/leases/y")[0] == 200  # not counted
    struck = patch(client)
    assert (struck and struck[0]) == answer
    assert server.changes == (3 if carried_out else 2)
    assert patch(client)[0] == 200
    assert proxy.fired() == {Fault.parse(f"{kind}@2")}


def test_half_of_the_json_arrives_as_a_whole_answer(proxy, client, server):
    arm(proxy, "truncate@1")
    status, body = patch(client)
    assert status == 200 and server.changes == 1
    with pytest.raises(ValueError):
        json.loads(body)


@pytest.mark.parametrize("kind, carried_out, answered", [
    ("kill-before", 0, False), ("kill-between", 1, False), ("kill-after", 1, True)])
def test_the_sender_is_killed_before_between_or_after(proxy, client, server, kind, carried_out, answered):
    killed = []
    proxy.kill = lambda: killed.append(server.changes)
    arm(proxy, f"{kind}@1")
    assert (patch(client) is not None) == answered
    for _ in range(100):  # the last of the three kills after it has answered
        if killed:
            break
        time.sleep(0.01)
    assert killed == [carried_out]


def test_a_fault_of_one_resource_leaves_the_others_alone(proxy, client):
    arm(proxy, "refuse-500*2/pods@0")
    assert patch(client)[0] == 200
    path = "/api/v1/namespaces/x/pods/y"
    assert [patch(client, path)[0] for _ in range(3)] == [500, 500, 200]


def test_lists_come_shuffled_from_the_past_or_cut(proxy, client):
    def names():
        client.request("GET", NODES + "?limit=500&resourceVersion=0")
        body = client.getresponse().read()
        return "".join(item["metadata"]["name"] for item in json.loads(body)["items"])
    arm(proxy, "shuffle@0", seed=1)
    assert names() != "abcdefgh" and sorted(names()) == list("abcdefgh")
    past = json.dumps({"metadata": {"resourceVersion": "5"}, "items": []}).encode()
    arm(proxy, "stale=1@0", past={NODES: past})
    assert names() == ""
    arm(proxy, "cut-list@0")
    with pytest.raises(ValueError):
        names()
    assert names() == "abcdefgh"


def frame(kind, name, version):
    return json.dumps({"type": kind, "object": {"metadata": {"name": name, "uid": name, "resourceVersion": version}}})


def watch(client):
    client.request("GET", NODES + "?watch=1&resourceVersion=9")
    return client.getresponse()


def test_watch_events_come_late(proxy, client, server):
    server.frames = [frame("ADDED", "a", "10")]
    arm(proxy, "delay=0.5@0")
    began = time.monotonic()
    assert json.loads(watch(client).readline())["type"] == "ADDED"
    assert time.monotonic() - began >= 0.5


def test_a_watch_expires_inside_of_its_stream(proxy, client, server):
    server.frames = [frame("ADDED", "a", "10")]
    response = watch(client)
    response.readline()
    arm(proxy, "gone-event@0")
    error = json.loads(response.readline())
    assert error["type"] == "ERROR" and error["object"]["code"] == 410
    assert response.read() == b""


def test_a_watch_is_refused_with_410_once(proxy, client):
    arm(proxy, "gone-status@0")
    response = watch(client)
    assert response.status == 410 and json.loads(response.read())["reason"] == "Expired"
    assert watch(client).status == 200


def test_of_several_changes_only_the_last_is_told():
    told = last_of_each([text.encode() for text in (
        frame("ADDED", "a", "1"), frame("MODIFIED", "b", "2"), frame("MODIFIED", "a", "3"), frame("BOOKMARK", "", "4"),
        frame("ADDED", "c", "5"), frame("DELETED", "c", "6"), frame("DELETED", "b", "7"))])
    assert [(d["type"], d["object"]["metadata"]["name"], d["object"]["metadata"]["resourceVersion"])
            for d in map(json.loads, told)] == [("ADDED", "a", "3"), ("DELETED", "b", "7")]
