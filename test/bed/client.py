"""A small client for the bed's API server: JSON over kept-alive TLS connections, one per thread.

Polling through kubectl would cost 100 ms of CPU a question; this costs one.
"""
import http.client
import json
import select
import socket
import ssl
import threading

PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
# kind -> (API prefix, plural, namespaced); more are added with register_kind().
KINDS = {
    "Node": ("/api/v1", "nodes", False),
    "Namespace": ("/api/v1", "namespaces", False),
    "Pod": ("/api/v1", "pods", True),
    "Secret": ("/api/v1", "secrets", True),
    "ConfigMap": ("/api/v1", "configmaps", True),
    "Service": ("/api/v1", "services", True),
    "ServiceAccount": ("/api/v1", "serviceaccounts", True),
    "Event": ("/api/v1", "events", True),
    "Deployment": ("/apis/apps/v1", "deployments", True),
    "DaemonSet": ("/apis/apps/v1", "daemonsets", True),
    "StatefulSet": ("/apis/apps/v1", "statefulsets", True),
    "ReplicaSet": ("/apis/apps/v1", "replicasets", True),
    "Job": ("/apis/batch/v1", "jobs", True),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets", True),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases", True),
    "EnergyPolicy": ("/apis/kwatt.dev/v1alpha1", "energypolicies", False),
    "NodePower": ("/apis/kwatt.dev/v1alpha1", "nodepowers", False),
    "Site": ("/apis/kwatt.dev/v1alpha1", "sites", False),
    "SiteRecommendation": ("/apis/kwatt.dev/v1alpha1", "siterecommendations", True),
    "Estimator": ("/apis/kwatt.dev/v1alpha1", "estimators", True),
}


class ApiError(RuntimeError):
    """An answer of 400 or more; `status` is the code, `reason` and `body` come from the Status object."""

    def __init__(self, method, path, status, body):
        self.status, self.body = status, body
        self.reason = body.get("reason", "") if isinstance(body, dict) else ""
        message = body.get("message", body) if isinstance(body, dict) else body
        super().__init__(f"{method} {path}: {status} {message}")


def register_kind(kind, prefix, plural, namespaced):
    KINDS[kind] = (prefix, plural, namespaced)


def path_of(kind, name=None, namespace=None, subresource=None):
    """The URL path of a collection (no name) or of an object; all namespaces without a namespace."""
    prefix, plural, namespaced = KINDS[kind]
    parts = [prefix]
    if namespaced and namespace:
        parts += ["namespaces", namespace]
    parts += [part for part in (plural, name, subresource) if part]
    return "/".join(parts)


class Client:
    """Requests as one user (a client certificate or a bearer token)."""

    def __init__(self, port, ca_file, cert=None, token=None, timeout=60):
        self.port, self.timeout = port, timeout
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        if cert:
            self._tls.load_cert_chain(str(cert[0]), str(cert[1]))
        self._local = threading.local()

    def request(self, method, path, body=None, content_type="application/json"):
        """The decoded answer (text if it is not JSON); ApiError from 400 on, OSError without a server."""
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        status, kind, answer = self._exchange(method, path, data, content_type)
        decoded = json.loads(answer) if "json" in kind else answer.decode(errors="replace")
        if status >= 400:
            raise ApiError(method, path, status, decoded)
        return decoded

    def _exchange(self, method, path, data, content_type):
        headers = dict(self._headers)
        if data is not None:
            headers["Content-Type"] = content_type
        try:
            return self._send(method, path, data, headers)
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def _send(self, method, path, data, headers):
        connection = getattr(self._local, "connection", None)
        if connection is not None and select.select([connection.sock], [], [], 0)[0]:
            self.close()  # readable without a request: the server (restarted, perhaps) has hung up
            connection = None
        if connection is None:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self._tls,
                                                     timeout=self.timeout)
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._local.connection = connection
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type", ""), response.read()

    def close(self):
        """Drops this thread's connection."""
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def get(self, kind, name, namespace=None):
        return self.request("GET", path_of(kind, name, namespace))

    def find(self, kind, name, namespace=None):
        """Like get(), None instead of 404."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind, namespace=None, query=""):
        """The items; `query` as in the URL, for example "labelSelector=app%3Dweb"."""
        return self.request("GET", path_of(kind, None, namespace) + (f"?{query}" if query else ""))["items"]

    def create(self, obj):
        return self.request("POST", path_of(obj["kind"], None, obj["metadata"].get("namespace")), obj)

    def patch(self, kind, name, body, namespace=None, how="merge", subresource=None):
        return self.request("PATCH", path_of(kind, name, namespace, subresource), body, PATCH_TYPES[how])

    def delete(self, kind, name, namespace=None):
        return self.request("DELETE", path_of(kind, name, namespace))

    def annotate(self, kind, name, annotations, namespace=None):
        """Sets annotations; None as a value removes one."""
        return self.patch(kind, name, {"metadata": {"annotations": annotations}}, namespace)

    def evict(self, pod, namespace="default"):
        """The Eviction API; ApiError with status 429 when a disruption budget forbids it."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        return self.request("POST", path_of("Pod", pod, namespace, "eviction"), body)
