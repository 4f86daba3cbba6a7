"""A site whose kube-schedulers ask kwatt: the real programs on loopback.

    default-scheduler   names only, filter and prioritize, plain HTTP, the leader
    kwatt-bind          names only, with bind, TLS with a client certificate, a replica that does not lead
    kwatt-whole         whole nodes (nodeCacheCapable: false), plain HTTP, the leader
"""
import base64
from pathlib import Path

from bed import objects
from bed.process import PortReservation, wait_until
from lab.site import Site

ROOT = Path(__file__).resolve().parent.parent.parent
VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 100_000, "ignorable": True}


class ExtenderSite:
    def __init__(self, directory):
        self._ports = [PortReservation(), PortReservation()]
        self.plain_port, self.tls_port = (reservation.port for reservation in self._ports)
        extender = {"urlPrefix": f"http://127.0.0.1:{self.plain_port}/scheduler", "nodeCacheCapable": True, **VERBS}
        self.site = Site(directory, redfish=False, scheduler_config=config(extender))
        self.bed = self.site.bed

    def __enter__(self):
        self.site.start()
        try:
            site, bed = self.site, self.bed
            bed.kubectl("apply", "-f", ROOT / "manifests" / "optional" / "extender-bind-rbac.yaml")
            self.leader = site.start_controller("--extender-address", f"127.0.0.1:{self.plain_port}")
            wait_until(lambda: "leading" in self.leader.log_tail(200), 30, "the first controller to lead")
            self.follower = site.start_controller(
                "--extender-address", f"127.0.0.1:{self.tls_port}", "--extender-tls", "--extender-bind",
                "--extender-client-ca-file", bed.ca_file, name="follower")
            cert, key = bed.client_cert("kube-scheduler")
            bed.start_scheduler("kwatt-bind", config({
                "urlPrefix": f"https://127.0.0.1:{self.tls_port}/scheduler", "bindVerb": "bind", "enableHTTPS": True,
                "nodeCacheCapable": True, **VERBS,
                "tlsConfig": {"caData": encoded(bed.ca_file), "certData": encoded(cert), "keyData": encoded(key)}}))
            bed.start_scheduler("kwatt-whole", config({
                "urlPrefix": f"http://127.0.0.1:{self.plain_port}", "nodeCacheCapable": False, **VERBS}))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.site.stop()
        for reservation in self._ports:
            reservation.release()

    # ---- looking ------------------------------------------------------------------------------------------

    def log(self, controller=None):
        return (controller or self.leader).log_path.read_text()

    def ranking(self, pod, controller=None):
        """The line that says why the best node for `pod` ("ns/name") is the best."""
        lines = [line for line in self.log(controller).splitlines() if f"pod={pod} " in line and "ranked" in line]
        return lines[-1] if lines else ""

    def place(self, namespace, name, seconds=30, **spec):
        """Creates a pod; the node it was bound to."""
        self.bed.kubectl("apply", "-f", "-", input=objects.pod(name, namespace=namespace, **spec))
        return self.wait_bound(namespace, name, seconds)

    def wait_bound(self, namespace, name, seconds=30):
        return wait_until(lambda: self.bed.api.get("Pod", name, namespace)["spec"].get("nodeName"), seconds,
                          f"pod {namespace}/{name} to be bound")


def config(extender):
    return {"percentageOfNodesToScore": 100, "extenders": [{"httpTimeout": "5s", **extender}]}


def encoded(path):
    return base64.b64encode(Path(path).read_bytes()).decode()
