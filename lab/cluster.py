"""The machines' side of the cluster: which pods load them, and the heartbeat that kwok sends for those that are on."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Callable, Mapping

from .kube import KubeClient, KubeError, reflect
from .log import RoomLog

CPU_ANNOTATION = "lab.kwatt.dev/cpu"
KWOK_ANNOTATION = "kwok.x-k8s.io/node"
KWOK_VALUE = "fake"
RETRY_SECONDS = 0.5
BOUND = "&fieldSelector=spec.nodeName!%3D"  # only pods that are on a node


def millicores(quantity: str) -> int | None:
    """A CPU quantity as Kubernetes writes it ("250m", "2", "0.5"), rounded up; None if it is not one."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(m?)", quantity)
    if not found:
        return None
    return -int(-float(found.group(1)) * (1 if found.group(2) else 1000) // 1)


def pod_millicores(pod: Mapping[str, Any], default_fraction: float) -> int:
    """What the pod uses: its annotation in millicores ("250" or "250m"), else a fraction of its CPU request."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    stated = ((pod["metadata"].get("annotations") or {}).get(CPU_ANNOTATION) or "").removesuffix("m")
    if re.fullmatch(r"\d{1,9}", stated):
        return int(stated)
    requested = 0
    for container in (pod.get("spec") or {}).get("containers") or []:
        request = ((container.get("resources") or {}).get("requests") or {}).get("cpu")
        requested += millicores(str(request)) or 0 if request is not None else 0
    return int(requested * default_fraction)


class PodLoad:
    """Millicores used on each node; on_change(node, millicores) is called when that changes."""

    def __init__(self, default_fraction: float, on_change: Callable[[str, int], None]) -> None:
        self._fraction = default_fraction
        self._on_change = on_change
        self._pods: dict[str, tuple[str, int]] = {}  # uid: node, millicores
        self._nodes: dict[str, int] = {}

    def on(self, node: str) -> int:
        return self._nodes.get(node, 0)

    def replace(self, objects: list[dict[str, Any]]) -> None:
        pods = {pod["metadata"]["uid"]: self._entry(pod) for pod in objects}
        nodes: dict[str, int] = {}
        for node, used in pods.values():
            nodes[node] = nodes.get(node, 0) + used
        changed = {node for node in {*nodes, *self._nodes} if nodes.get(node, 0) != self._nodes.get(node, 0)}
        self._pods, self._nodes = pods, nodes
        for node in sorted(changed):
            self._on_change(node, nodes.get(node, 0))

    def set(self, item: dict[str, Any]) -> None:
        uid, new = item["metadata"]["uid"], self._entry(item)
        old = self._pods.get(uid)
        if old == new:
            return
        self._pods[uid] = new
        if old and old[0] == new[0]:
            self._add(new[0], new[1] - old[1])
            return
        if old:
            self._add(old[0], -old[1])
        self._add(*new)

    def remove(self, item: dict[str, Any]) -> None:
        old = self._pods.pop(item["metadata"]["uid"], None)
        if old:
            self._add(old[0], -old[1])

    def _entry(self, pod: Mapping[str, Any]) -> tuple[str, int]:
        return (pod.get("spec") or {}).get("nodeName") or "", pod_millicores(pod, self._fraction)

    def _add(self, node: str, used: int) -> None:
        if used and node:
            self._nodes[node] = self._nodes.get(node, 0) + used
            self._on_change(node, self._nodes[node])


class Heartbeats:
    """Keeps kwok's annotation on the Nodes of machines that are on, and off the others; other Nodes are left alone."""

    def __init__(self, client: KubeClient, wanted: Callable[[str], bool | None], log: RoomLog) -> None:
        self._client = client
        self._wanted = wanted  # None: not one of our machines
        self._log = log
        self._seen: dict[str, tuple[int, bool]] = {}  # node: resource version, annotated
        self._patching: dict[str, asyncio.Task[None]] = {}

    def replace(self, objects: list[dict[str, Any]]) -> None:
        self._seen = {}
        for item in objects:
            self.set(item)

    def set(self, item: dict[str, Any]) -> None:
        name, version = item["metadata"]["name"], int(item["metadata"]["resourceVersion"])
        # The watch may still be behind what our own patch was answered with.
        if version >= self._seen.get(name, (0, False))[0]:
            annotations = item["metadata"].get("annotations") or {}
            self._seen[name] = version, annotations.get(KWOK_ANNOTATION) == KWOK_VALUE
            self.check(name)

    def remove(self, item: dict[str, Any]) -> None:
        self._seen.pop(item["metadata"]["name"], None)

    def check(self, name: str) -> None:
        """Patches the Node if it is not as it should be; called on every change of the Node or of the machine."""
        wanted, seen = self._wanted(name), self._seen.get(name)
        if wanted is not None and seen is not None and seen[1] != wanted and name not in self._patching:
            self._patching[name] = asyncio.get_running_loop().create_task(self._patch(name, wanted))

    async def _patch(self, name: str, wanted: bool) -> None:
        try:
            body = {"metadata": {"annotations": {KWOK_ANNOTATION: KWOK_VALUE if wanted else None}}}
            node = await self._client.merge_patch(f"/api/v1/nodes/{name}", body)
            self._log.add("kube", name, heartbeat=wanted)
            self.set(node)
        except KubeError as error:
            if error.status == 404:
                self._seen.pop(name, None)
            else:
                await asyncio.sleep(RETRY_SECONDS)
        except (OSError, TimeoutError, EOFError, ValueError, KeyError):
            await asyncio.sleep(RETRY_SECONDS)
        finally:
            del self._patching[name]
        self.check(name)

    async def stop(self) -> None:
        tasks = list(self._patching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class ClusterLink:
    """Runs the two reflectors of a room."""

    def __init__(self, client: KubeClient, pods: PodLoad, heartbeats: Heartbeats, log: RoomLog) -> None:
        self._client = client
        self._pods = pods
        self.heartbeats = heartbeats
        self._log = log
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()

        def failed(message: str) -> None:
            self._log.add("kube", "", error=message)

        self._tasks = [
            loop.create_task(reflect(self._client, "/api/v1/pods", BOUND, self._pods, failed)),
            loop.create_task(reflect(self._client, "/api/v1/nodes", "", self.heartbeats, failed)),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.heartbeats.stop()
