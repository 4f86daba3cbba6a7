"""A real metrics-server beside a bed, scraping kwok's kubelets.

    aggregation = Aggregation(directory)             # before the bed: certificates and command lines
    with Bed(apiserver_args=aggregation.apiserver_args, kwok_args=aggregation.kwok_args) as bed:
        aggregation.prepare_node(bed, "n1")
        aggregation.start(bed)
"""
from pathlib import Path

from bed import build
from bed.pki import Authority
from bed.process import PortReservation, Process, wait_until

HERE = Path(__file__).resolve().parent
RESOLUTION = "10s"  # the least that metrics-server accepts


class Aggregation:
    """metrics.k8s.io through the API server's aggregation layer. All ends with stop()."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._program = build.ensure_optional("metrics-server")
        authority = Authority(self.directory / "front")
        certificate, key = authority.issue_client("aggregator", "aggregator")
        self.apiserver_args = (f"--requestheader-client-ca-file={authority.ca_file}",
                               "--requestheader-allowed-names=aggregator",
                               "--requestheader-extra-headers-prefix=X-Remote-Extra-",
                               "--requestheader-group-headers=X-Remote-Group",
                               "--requestheader-username-headers=X-Remote-User",
                               f"--proxy-client-cert-file={certificate}", f"--proxy-client-key-file={key}")
        self._kubelet, self._server = PortReservation(), PortReservation()
        certificate, key = authority.issue_server("kubelet", ["127.0.0.1", "localhost"])
        self.kwok_args = (f"--config={HERE / 'usage.yaml'}", f"--node-port={self._kubelet.port}",
                          f"--server-address=127.0.0.1:{self._kubelet.port}",
                          f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}")
        self.process = None

    def prepare_node(self, bed, name):
        """Tells metrics-server where the node's kubelet serves its usage."""
        bed.api.annotate("Node", name, {"metrics.k8s.io/resource-metrics-path": f"/metrics/nodes/{name}/metrics/resource"})
        bed.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p",
                    '{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}' % self._kubelet.port)

    def start(self, bed):
        port = self._server.port
        self.process = Process("metrics-server", [
            self._program, f"--kubeconfig={bed.kubeconfig}", f"--authentication-kubeconfig={bed.kubeconfig}",
            f"--authorization-kubeconfig={bed.kubeconfig}", "--kubelet-insecure-tls",
            "--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port",
            f"--metric-resolution={RESOLUTION}", "--kubelet-request-timeout=5s", "--bind-address=127.0.0.1",
            f"--secure-port={port}", f"--cert-dir={self.directory / 'certs'}",
        ], self.directory / "metrics-server.log")
        self.process.start()
        # Endpoints refuse loopback addresses; a name that resolves to one does as well.
        bed.kubectl("apply", "-f", "-", input=[
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics-server", "namespace": "kube-system"},
             "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}},
            {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
             "metadata": {"name": "v1beta1.metrics.k8s.io"},
             "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": True,
                      "groupPriorityMinimum": 100, "versionPriority": 100,
                      "service": {"name": "metrics-server", "namespace": "kube-system", "port": port}}}])

    def wait_for(self, bed, nodes, seconds=90):
        """Until metrics-server has measured all of them."""
        def measured():
            self.process.check()
            try:
                items = bed.api.request("GET", "/apis/metrics.k8s.io/v1beta1/nodes")["items"]
            except Exception:  # noqa: BLE001 - not served yet, in whatever way
                return False
            return set(nodes) <= {item["metadata"]["name"] for item in items}
        wait_until(measured, seconds, f"metrics of {', '.join(nodes)}", every=0.5)

    def stop(self):
        if self.process:
            self.process.stop(grace=0)
        self._kubelet.release()
        self._server.release()
