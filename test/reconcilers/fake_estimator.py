"""Fakes for the tests of sites: what an estimator answers to WAO's clients, and Karmada's aggregated proxy."""
import http.client
import http.server
import json
import ssl
import threading
import urllib.parse


class _Server:
    def __init__(self, handler, address="127.0.0.1", cert=None):
        self._server = http.server.ThreadingHTTPServer((address, 0), handler)
        self._server.daemon_threads = True
        if cert:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(str(cert[0]), str(cert[1]))
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.address, self.port = self._server.server_address[:2]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


class FakeEstimator(_Server):
    """Says `watts` more for each workload; `answer` (status, text) goes before. Requests are kept as (path, body,
    headers)."""

    def __init__(self, watts, address="127.0.0.1"):
        self.watts, self.answer, self.requests = watts, None, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, asked, dict(self.headers)))
                increases = [outer.watts * (i + 1) for i in range(asked["num_workloads"])]
                status, text = outer.answer or (200, json.dumps({**asked, "watt_increases": increases}))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        super().__init__(Handler, address)


class FakeKarmadaProxy(_Server):
    """The aggregated API cluster.karmada.io/v1alpha1 as far as clusters/NAME/proxy: it passes requests on to the API
    server of that member, with a token of its own. `members`: name → (port, CA file, token)."""

    PREFIX = "/apis/cluster.karmada.io/v1alpha1"

    def __init__(self, cert, members):
        self.passed = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = urllib.parse.unquote(self.path)
                parts = path.removeprefix(outer.PREFIX + "/clusters/").split("/", 2)
                if not path.startswith(outer.PREFIX + "/clusters/") or parts[0] not in members:
                    self._reply(200, b'{"kind":"APIResourceList","groupVersion":"cluster.karmada.io/v1alpha1",'
                                     b'"resources":[]}')
                    return
                name, proxy, rest = parts
                assert proxy == "proxy"
                outer.passed.append((self.command, name, "/" + rest))
                port, ca_file, token = members[name]
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                trust = ssl.create_default_context(cafile=str(ca_file))
                member = http.client.HTTPSConnection("127.0.0.1", port, context=trust, timeout=10)
                member.request(self.command, "/" + rest, body, {"Authorization": f"Bearer {token}",
                                                                "Content-Type": "application/json"})
                answer = member.getresponse()
                self._reply(answer.status, answer.read())
                member.close()

            do_POST = do_GET

            def _reply(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        super().__init__(Handler, cert=cert)

    def register(self, bed):
        """Its APIService; Endpoints refuse loopback addresses, a name that resolves to one does as well."""
        bed.kubectl("apply", "-f", "-", input=[
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "fake-karmada", "namespace": "kube-system"},
             "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.port}]}},
            {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
             "metadata": {"name": "v1alpha1.cluster.karmada.io"},
             "spec": {"group": "cluster.karmada.io", "version": "v1alpha1", "insecureSkipTLSVerify": True,
                      "groupPriorityMinimum": 100, "versionPriority": 100,
                      "service": {"name": "fake-karmada", "namespace": "kube-system", "port": self.port}}}])
