"""Pods' load and nodes' heartbeat, against an API server that is a script of a few lines."""

import asyncio
import base64
import json
import re
import threading
import time

import pytest

from lab import KubeOptions
from lab.cluster import PodLoad, millicores, pod_millicores
from lab.kubeconfig import from_kubeconfig, parse_yaml


def pod(uid, node="node1", cpu="1", used=None, phase="Running"):
    return {"metadata": {"uid": uid, "name": uid, "resourceVersion": "1",
                         "annotations": {"lab.kwatt.dev/cpu": used} if used else {}},
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}, {}]},
            "status": {"phase": phase}}


QUANTITIES = [("250m", 250), ("2", 2000), ("0.5", 500), ("0.0001", 1), ("1.5m", 2), ("", None), ("-1", None), ("2Gi", None),
              ("m", None), ("1e3", None)]


@pytest.mark.parametrize("quantity, want", QUANTITIES)
def test_cpu_quantities_are_read_as_kubernetes_writes_them(quantity, want):
    assert millicores(quantity) == want


def test_a_pod_uses_what_its_annotation_says_or_a_part_of_its_request():
    assert pod_millicores(pod("a", used="300"), 0.5) == 300
    assert pod_millicores(pod("a", used="300m"), 0.5) == 300
    assert pod_millicores(pod("a", used="lots"), 0.5) == 500
    assert pod_millicores(pod("a", cpu="200m"), 0.5) == 100
    assert pod_millicores(pod("a", phase="Succeeded"), 0.5) == 0
    assert pod_millicores({"metadata": {}, "spec": None}, 0.5) == 0


def test_load_is_counted_per_node_through_any_order_of_events():
    seen = []
    load = PodLoad(0.5, lambda node, used: seen.append((node, used)))
    load.replace([pod("a"), pod("b"), pod("c", node="node2", used="100")])
    assert seen == [("node1", 1000), ("node2", 100)]
    load.set(pod("a", used="200"))
    load.set(pod("a", used="200"))
    load.remove(pod("b"))
    load.remove(pod("b"))
    load.set(pod("c", node="node2", phase="Failed"))
    assert seen[2:] == [("node1", 700), ("node1", 200), ("node2", 0)]
    load.replace([pod("d", node="node3", used="5")])
    assert (load.on("node1"), load.on("node2"), load.on("node3")) == (0, 0, 5)


YAML = """
# made by hand
apiVersion: v1
kind: Config
current-context: "lab"
clusters:
- name: lab
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority-data: Zm9v
contexts:
  - name: lab
    context: {cluster: lab, "user": me}
  - context:
      cluster: 'it''s'
      user: me
    name: other
users: []
preferences: {}
"""


def test_a_kubeconfig_in_yaml_is_read():
    assert parse_yaml(YAML) == {
        "apiVersion": "v1", "kind": "Config", "current-context": "lab", "preferences": {}, "users": [],
        "clusters": [{"name": "lab", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "Zm9v"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}},
                     {"context": {"cluster": "it's", "user": "me"}, "name": "other"}]}
    assert parse_yaml('{"kind": "Config"}') == {"kind": "Config"}


@pytest.mark.parametrize("text", ["kind Config", "a: 1\n   b: 2", "a:\n  b: 1\n c: 2"])
def test_other_yaml_is_refused_with_its_line(text):
    with pytest.raises(ValueError, match="kubeconfig line"):
        parse_yaml(text)


def test_a_kubeconfig_names_what_it_lacks(tmp_path):
    file = tmp_path / "config"
    file.write_text("current-context: here\ncontexts: []\n")
    with pytest.raises(ValueError, match="no context 'here'"):
        from_kubeconfig(file)
    file.write_text("current-context: a\ncontexts:\n- name: a\n  context: b\n")
    with pytest.raises(ValueError, match="not a kubeconfig"):
        from_kubeconfig(file)


def test_files_inline_data_and_tokens_of_a_kubeconfig_are_used(tmp_path, certificate):
    cert = open(certificate.cert).read()
    (tmp_path / "ca.pem").write_text(cert)
    config = {"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
              "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:7", "certificate-authority": "ca.pem"}}],
              "users": [{"name": "u", "user": {
                  "token": "abc", "client-certificate-data": base64.b64encode(cert.encode()).decode(),
                  "client-key": certificate.key}}]}
    (tmp_path / "config").write_text(json.dumps(config))
    connection = from_kubeconfig(tmp_path / "config")
    assert (connection.host, connection.port, connection.token) == ("127.0.0.1", 7, "abc")
    assert [ca["subject"] for ca in connection.tls.get_ca_certs()] == [((("commonName", "lab"),),)]


class FakeApiServer:
    """Named a fake because it is one: lists, watches and merge patches of annotations, in memory, on loopback."""

    def __init__(self):
        self.nodes, self.pods, self.version = {}, {}, 1
        self.watchers = {"nodes": [], "pods": []}
        self.history = {"nodes": [], "pods": []}  # (version, event): a watch begins where its list ended
        self.patches, self.lists, self.broken = [], 0, 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        assert self._ready.wait(5)

    async def _main(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def stop(self):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def end_watches(self, kind):
        self.do(lambda: [queue.put_nowait(None) for queue in self.watchers[kind]])

    def do(self, action):
        async def run():
            return action()
        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(5)

    def put(self, kind, name, item):
        def change():
            store = getattr(self, kind)
            self.version += 1
            item["metadata"] = {**item["metadata"], "resourceVersion": str(self.version)}
            event = "MODIFIED" if name in store else "ADDED"
            store[name] = item
            self.send(kind, event, item)
        self.do(change)

    def send(self, kind, event, item):
        data = json.dumps({"type": event, "object": item}).encode() + b"\n"
        if event != "ERROR":
            self.history[kind].append((int(item["metadata"]["resourceVersion"]), data))
        for queue in self.watchers[kind]:
            queue.put_nowait(data)

    def node(self, name, annotations):
        self.put("nodes", name, {"metadata": {"name": name, "annotations": annotations}})

    def annotated(self, name):
        return self.do(lambda: (self.nodes[name]["metadata"]["annotations"] or {}).get("kwok.x-k8s.io/node"))

    async def _serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target = head.split()[:2]
            length = re.search(r"content-length: (\d+)", head, re.I)
            body = await reader.readexactly(int(length.group(1))) if length else b""
            kind = target.split("?")[0].split("/")[3]
            if "watch=1" in target:
                await self._watch(kind, int(re.search(r"resourceVersion=(\d+)", target).group(1)), writer)
            else:
                self._answer(method, kind, target, body, writer)
                await writer.drain()
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, method, kind, target, body, writer):
        status = 200
        if self.broken:
            self.broken -= 1
            status, answer = 500, {"message": "as you wished"}
        elif method == "PATCH":
            name = target.split("?")[0].split("/")[-1]
            change = json.loads(body)["metadata"]["annotations"]
            self.patches.append((name, change))
            item = self.nodes[name]
            merged = {**(item["metadata"]["annotations"] or {}), **change}
            self.version += 1
            item["metadata"]["annotations"] = {k: v for k, v in merged.items() if v is not None}
            item["metadata"]["resourceVersion"] = str(self.version)
            self.send("nodes", "MODIFIED", item)
            answer = item
        else:
            self.lists += 1
            answer = {"metadata": {"resourceVersion": str(self.version)}, "items": list(getattr(self, kind).values())}
        data = json.dumps(answer).encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)

    async def _watch(self, kind, since, writer):
        queue = asyncio.Queue()
        for version, data in self.history[kind]:
            if version > since:
                queue.put_nowait(data)
        self.watchers[kind].append(queue)
        try:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while (data := await queue.get()) is not None:
                for part in (data[:7], data[7:]):  # events do not arrive in one piece
                    writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                    await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        finally:
            self.watchers[kind].remove(queue)


@pytest.fixture
def api():
    server = FakeApiServer()
    yield server
    server.stop()


@pytest.fixture
def linked(api, make_room):
    api.node("node1", {"kwok.x-k8s.io/node": "fake"})
    api.node("stranger", {})
    room = make_room(kube=KubeOptions(server=api.url))
    room.add_machine("node1", boot_seconds=0.1, shutdown_seconds=0.1, base_load_percent=0)
    return room


def eventually(condition, seconds=5):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_pods_load_their_machine_as_they_come_and_go(api, linked):
    api.put("pods", "a", pod("a", used="8000"))
    assert linked.wait_for("node1", lambda m: m["load"]["podMillicores"] == 8000)["load"]["demandPercent"] == 50
    api.put("pods", "a", pod("a", used="4000"))
    linked.wait_for("node1", lambda m: m["load"]["podMillicores"] == 4000)
    api.do(lambda: api.send("pods", "DELETED", api.pods.pop("a")))
    linked.wait_for("node1", lambda m: m["load"]["podMillicores"] == 0)


def test_a_machine_added_later_has_the_load_of_its_pods(api, linked):
    api.put("pods", "b", pod("b", node="node2", used="1600"))
    api.put("pods", "a", pod("a", used="1"))
    linked.wait_for("node1", lambda m: m["load"]["podMillicores"] == 1)
    assert linked.add_machine("node2")["load"]["podMillicores"] == 1600


def test_a_machine_that_is_not_on_has_no_heartbeat_and_others_are_left_alone(api, linked):
    linked.power("node1", "GracefulShutdown")
    eventually(lambda: api.annotated("node1") is None)
    linked.wait_state("node1", "Off")
    linked.power("node1", "On")
    linked.wait_state("node1", "On")
    eventually(lambda: api.annotated("node1") == "fake")
    assert {name for name, _ in api.patches} == {"node1"}
    # The room logs a patch when it has been answered, which is a little later.
    eventually(lambda: [e["heartbeat"] for e in linked.log(kind="kube", machine="node1")] == [False, True])
    assert len(api.patches) == 2


def test_a_node_registered_while_its_machine_is_off_is_silenced(api, linked):
    linked.add_machine("node2", initial_state="Off")
    api.node("node2", {"kwok.x-k8s.io/node": "fake"})
    eventually(lambda: api.annotated("node2") is None)


def test_a_heartbeat_fault_leaves_a_running_machine_silent(api, linked):
    linked.set_faults("node1", wake="noHeartbeat")
    eventually(lambda: api.annotated("node1") is None)
    linked.set_faults("node1", wake="ok")
    eventually(lambda: api.annotated("node1") == "fake")


def test_a_failed_patch_is_tried_again(api, linked):
    eventually(lambda: len(api.watchers["nodes"]) == 1)
    api.do(lambda: setattr(api, "broken", 1))
    linked.power("node1", "ForceOff")
    eventually(lambda: api.annotated("node1") is None)


@pytest.mark.parametrize("end", ["closed", "gone"])
def test_a_watch_that_ends_is_followed_by_another_and_an_error_by_a_list(api, linked, end):
    eventually(lambda: len(api.watchers["pods"]) == 1)
    lists = api.do(lambda: api.lists)
    if end == "closed":
        api.end_watches("pods")
    else:
        api.do(lambda: api.pods.__setitem__("a", pod("a", used="700")))
        api.do(lambda: api.send("pods", "ERROR", {"kind": "Status", "code": 410, "message": "too old"}))
        api.end_watches("pods")
        linked.wait_for("node1", lambda m: m["load"]["podMillicores"] == 700)
        assert "410" in linked.log(kind="kube")[-1]["error"]
    eventually(lambda: len(api.watchers["pods"]) == 1)
    api.put("pods", "a", pod("a", used="800"))
    linked.wait_for("node1", lambda m: m["load"]["podMillicores"] == 800)
    assert api.do(lambda: api.lists) == lists + (end == "gone")


def test_an_api_server_that_is_not_there_yet_is_waited_for(api, make_room):
    api.do(lambda: setattr(api, "broken", 3))
    api.put("pods", "a", pod("a", used="900"))
    room = make_room(kube=KubeOptions(server=api.url))
    room.add_machine("node1")
    room.wait_for("node1", lambda m: m["load"]["podMillicores"] == 900)
    assert "HTTP 500" in room.log(kind="kube")[0]["error"]
