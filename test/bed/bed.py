#!/usr/bin/env python3
"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, controller-manager, scheduler, kwok.

    python3 test/bed/bed.py up [--dir D] [--nodes N] [--no-kwok] [--detach]
    python3 test/bed/bed.py down [--dir D]

    from bed import Bed
    with Bed() as bed:
        bed.create_node("n1")
        print(bed.kubectl("get", "nodes"))
"""
import concurrent.futures
import http.client
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":  # started as a script: make the folder importable as the package `bed`
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bed import build, components, heartbeat, objects  # noqa: E402
from bed.access import run_kubectl, write_kubeconfig  # noqa: E402
from bed.client import ApiError, Client  # noqa: E402
from bed.components import Timers  # noqa: E402
from bed.pki import Authority  # noqa: E402
from bed.process import PortReservation, Process, port_is_free, wait_until  # noqa: E402

START_SECONDS = 60
# A short life with few objects: memory is there, and the API server spends a sixth of its CPU on
# collecting garbage otherwise.
GO = {"GOGC": "400"}


class Bed:
    """One control plane with its own ports, directory and CA. All its processes end with this one.

    directory         kept if given; a temporary one, removed by stop(), if None
    kwok, scheduler, controller_manager   whether to run these
    timers            components.Timers
    scheduler_config  merged into the KubeSchedulerConfiguration (extenders, profiles)
    audit             True: every request is in .audit_log
    apiserver_args, controller_manager_args, kwok_args   appended to the command lines
    """

    def __init__(self, directory=None, kwok=True, scheduler=True, controller_manager=True, timers=None,
                 scheduler_config=None, audit=False, apiserver_args=(), controller_manager_args=(), kwok_args=()):
        self._temporary = directory is None
        self.directory = Path(directory or tempfile.mkdtemp(prefix="kwatt-bed-")).resolve()
        self.timers = timers or Timers()
        self._wanted = {"kube-controller-manager": controller_manager, "kube-scheduler": scheduler,
                        "kwok": kwok}
        self._scheduler_config = scheduler_config
        self._apiserver_args, self._controller_manager_args = apiserver_args, controller_manager_args
        self._kwok_args = kwok_args
        self.audit_log = self.directory / "audit.log" if audit else None
        self._ports, self._processes = [], {}
        self._issued = 0
        self.start_seconds = None  # spawn to ready, without the building of programs

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ---- life -------------------------------------------------------------------------------------------

    def start(self):
        """Returns self when the API answers, the default service account exists and kwok runs."""
        self._programs = build.ensure()
        started = time.monotonic()
        try:
            self._prepare()
            self._run("etcd")
            self.start_apiserver()
            heartbeat.install(self.api)
            for name, wanted in self._wanted.items():
                if wanted:
                    self._run(name)
            self._default_service_account("default")
            self._await(lambda: heartbeat.in_force(self.api), "the kubelet label policy")
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.monotonic() - started
        return self

    def stop(self):
        """Kills every process and removes the data, or the whole directory if it is a temporary one."""
        for process in reversed(list(self._processes.values())):
            process.stop(grace=0)
        for port in self._ports:
            port.release()
        self._processes, self._ports = {}, []
        # etcd's segments alone are 128 MB, and nobody reads them again; logs and configurations stay.
        shutil.rmtree(self.directory if self._temporary else self.directory / "etcd", ignore_errors=True)

    def process(self, name):
        """The Process named like its program: .pid, .stop(), .start(), .signal(), .log_path."""
        return self._processes[name]

    def process_names(self):
        """The programs that this bed runs."""
        return [name for name in self._processes if self._wanted.get(name, True)]

    def stop_apiserver(self, kill=False):
        """Its port and data stay; kill=True is SIGKILL."""
        self.process("kube-apiserver").stop(grace=0 if kill else 20)

    def start_apiserver(self):
        """Starts it on its port and returns when /readyz answers."""
        self._await(lambda: port_is_free(self.port), f"port {self.port} to be free")
        self._run("kube-apiserver")
        self._await(self._ready, "kube-apiserver /readyz")

    def restart_apiserver(self, kill=False):
        self.stop_apiserver(kill)
        self.start_apiserver()

    def pause_apiserver(self):
        """SIGSTOP: connections stay open and nothing answers."""
        self.process("kube-apiserver").signal(signal.SIGSTOP)

    def resume_apiserver(self):
        self.process("kube-apiserver").signal(signal.SIGCONT)

    def memory(self):
        """Resident bytes by program."""
        return {name: process.resident_bytes() for name, process in self._processes.items()}

    # ---- access -----------------------------------------------------------------------------------------

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def kubectl(self, *args, input=None, check=True, kubeconfig=None, timeout=60):
        """Standard output of kubectl as admin (or with another kubeconfig). `input` may be a str, or a dict
        or list of dicts that is passed as JSON for `-f -`. CommandError on failure unless check=False."""
        return run_kubectl(self._programs["kubectl"], kubeconfig or self.kubeconfig, args, input, check, timeout)

    def kubectl_json(self, *args, **options):
        return json.loads(self.kubectl(*args, "-o", "json", **options))

    def connection(self):
        """Client(*bed.connection()) is an admin client, in another process too."""
        return self.port, self.ca_file, self._admin_cert

    def client_for(self, user, groups=()):
        """A Client (see client.py) that is `user` by client certificate."""
        return Client(self.port, self.ca_file, cert=self._client_cert(user, groups))

    def client_cert(self, user, groups=()):
        """(certificate file, key file) of a client, signed by the CA in .ca_file."""
        return self._client_cert(user, groups)

    def client_with_token(self, token):
        return Client(self.port, self.ca_file, token=token)

    def kubeconfig_for(self, user, groups=()):
        """Path of a new kubeconfig with a client certificate."""
        cert = self._client_cert(user, groups)
        return write_kubeconfig(cert[0].with_suffix(".kubeconfig"), self.url, self.ca_file, cert=cert)

    def kubeconfig_for_token(self, token):
        """Path of a new kubeconfig with this token."""
        path = self.directory / f"token-{self._number()}.kubeconfig"
        return write_kubeconfig(path, self.url, self.ca_file, token=token)

    def token_for(self, service_account, namespace="default", audience=None, bound_node=None, bound_pod=None,
                  seconds=3600):
        """A token from the TokenRequest API; bound_node and bound_pod are names of existing objects."""
        spec = {"expirationSeconds": seconds}
        if audience:
            spec["audiences"] = [audience]
        if bound_node or bound_pod:
            kind = "Node" if bound_node else "Pod"
            bound = self.api.get(kind, bound_node or bound_pod, None if bound_node else namespace)
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": kind, "name": bound["metadata"]["name"],
                                      "uid": bound["metadata"]["uid"]}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return self.api.request("POST", path, request)["status"]["token"]

    def issue_server_cert(self, name, sans=("127.0.0.1", "localhost")):
        """(certificate file, key file) of a TLS server, signed by the CA in .ca_file."""
        return self._authority.issue_server(name, list(sans))

    def start_scheduler(self, name, config):
        """Another kube-scheduler for pods with schedulerName `name`; `config` as for scheduler_config. Ends with
        the bed; its log is <directory>/<name>.log."""
        profiles = [{"schedulerName": name}]
        path = components.write_scheduler_config(self.directory / f"{name}.json",
                                                 self.directory / "kube-scheduler.kubeconfig",
                                                 {"profiles": profiles, **config})
        command = components.scheduler(self._programs["kube-scheduler"], path)
        self._processes[name] = Process(name, command, self.directory / f"{name}.log", {**GO, **os.environ})
        self._run(name)
        return self._processes[name]

    # ---- objects ----------------------------------------------------------------------------------------

    def create_namespace(self, name, labels=None):
        """Returns when pods can be created in it (its default service account exists)."""
        self.api.create(objects.namespace(name, labels))
        self._default_service_account(name)

    def create_node(self, name, wait=True, **options):
        """Creates objects.node(name, **options); returns it, Ready if wait."""
        self.api.create(objects.node(name, **options))
        if wait:
            self.wait_node_ready(name)
        return self.api.get("Node", name)

    def wait_node_ready(self, name, ready=True, seconds=30):
        """Waits for Ready=True (or, with ready=False, for anything else)."""
        state = "Ready" if ready else "NotReady"
        wait_until(lambda: objects.node_is_ready(self.api.get("Node", name)) == ready, seconds, f"node {name} {state}")

    def power_off_node(self, name):
        """What a machine that was switched off looks like: its kubelet falls silent."""
        self.api.annotate("Node", name, {objects.KWOK_ANNOTATION: None})

    def power_on_node(self, name):
        """The kubelet speaks again; the node becomes Ready by itself."""
        self.api.annotate("Node", name, {objects.KWOK_ANNOTATION: "fake"})

    # ---- inside -----------------------------------------------------------------------------------------

    def _prepare(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)
        for log in self.directory.glob("*.log"):
            log.unlink()  # of an earlier bed in this directory
        self._ports = [PortReservation() for _ in range(3)]
        self.port, etcd_port, peer_port = (reservation.port for reservation in self._ports)
        self._authority = Authority(self.directory / "pki")
        self.ca_file = self._authority.ca_file
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            server = pool.submit(self.issue_server_cert, "kube-apiserver",
                                 ["127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1"])
            keys = pool.submit(self._authority.service_account_key)
            identities = {"admin": ("kwatt-bed-admin", ["system:masters"]),
                          "kube-controller-manager": ("system:kube-controller-manager", []),
                          "kube-scheduler": ("system:kube-scheduler", []),
                          "kwok": ("kwok", ["system:masters"])}
            certs = {name: pool.submit(self._authority.issue_client, name, user, groups)
                     for name, (user, groups) in identities.items()}
            configs = {name: write_kubeconfig(self.directory / f"{name}.kubeconfig", self.url, self.ca_file,
                                              cert=cert.result()) for name, cert in certs.items()}
        self.kubeconfig = configs["admin"]
        self._admin_cert = certs["admin"].result()
        self.api = Client(*self.connection())
        pki = {"ca": self.ca_file, "server_cert": server.result()[0], "server_key": server.result()[1],
               "sa_private": keys.result()[0], "sa_public": keys.result()[1]}
        self._processes = {name: Process(name, command, self.directory / f"{name}.log", {**GO, **os.environ})
                           for name, command in self._commands(etcd_port, peer_port, pki, configs).items()}

    def _commands(self, etcd_port, peer_port, pki, configs):
        audit = self.audit_log and (components.write_audit_policy(self.directory / "audit-policy.json"),
                                    self.audit_log)
        scheduler_config = components.write_scheduler_config(
            self.directory / "scheduler.json", configs["kube-scheduler"], self._scheduler_config)
        programs = self._programs
        return {
            "etcd": components.etcd(programs["etcd"], self.directory / "etcd", etcd_port, peer_port),
            "kube-apiserver": components.apiserver(programs["kube-apiserver"], self.port, etcd_port, pki,
                                                   self.timers, audit, self._apiserver_args),
            "kube-controller-manager": components.controller_manager(
                programs["kube-controller-manager"], configs["kube-controller-manager"], pki, self.timers,
                self._controller_manager_args),
            "kube-scheduler": components.scheduler(programs["kube-scheduler"], scheduler_config),
            "kwok": components.kwok(programs["kwok"], configs["kwok"], self.timers, self._kwok_args),
        }

    def _run(self, name):
        self._processes[name].start()

    def _ready(self):
        try:
            return self.api.request("GET", "/readyz") == "ok"
        except (OSError, http.client.HTTPException, ApiError):
            return False

    def _await(self, condition, what):
        """wait_until that ends early, with the log, when one of our processes has died."""
        def checked():
            for process in self._processes.values():
                process.check()
            return condition()
        return wait_until(checked, START_SECONDS, what)

    def _default_service_account(self, namespace):
        """Pods are refused without it; made by hand where no controller-manager makes it."""
        if not self._wanted["kube-controller-manager"]:
            self.api.create(objects.service_account("default", namespace))
        self._await(lambda: self.api.find("ServiceAccount", "default", namespace), f"service account of {namespace}")

    def _client_cert(self, user, groups):
        safe = "".join(c if c.isalnum() or c in "-." else "-" for c in user)
        return self._authority.issue_client(f"client-{self._number()}-{safe}", user, groups)

    def _number(self):
        self._issued += 1
        return self._issued


if __name__ == "__main__":
    from bed.cli import main
    sys.exit(main())
