"""Command lines and configuration files of the control plane's programs."""
import json
from dataclasses import dataclass
from pathlib import Path

from bed import heartbeat

SERVICE_ACCOUNT_ISSUER = "https://kubernetes.default.svc"
STAGES_FILE = Path(__file__).resolve().parent / "stages.yaml"


@dataclass
class Timers:
    """How fast the cluster notices things; the defaults make a dead node NotReady in about 10 s."""

    node_monitor_period: str = "1s"
    node_monitor_grace: str = "10s"       # NotReady when the Lease is older than this
    node_lease_seconds: int = 8           # kwok renews every quarter of it
    toleration_seconds: int = 300         # default tolerationSeconds for not-ready and unreachable
    nodes_evicted_per_second: float = 10  # NoExecute taints of lost nodes


def etcd(program, directory, client_port, peer_port):
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [program, "--name=bed", f"--data-dir={directory}", "--unsafe-no-fsync",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=bed={peer}", "--quota-backend-bytes=8589934592", "--log-level=warn"]


def apiserver(program, port, etcd_port, pki, timers, audit=None, extra=()):
    """`pki` is the dict that Bed fills with file names; `audit` is (policy file, log file) or None."""
    command = [
        program, f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}",
        "--endpoint-reconciler-type=none",  # Endpoints refuse loopback addresses
        f"--tls-cert-file={pki['server_cert']}", f"--tls-private-key-file={pki['server_key']}",
        f"--client-ca-file={pki['ca']}", "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
        f"--service-account-issuer={SERVICE_ACCOUNT_ISSUER}",
        f"--service-account-signing-key-file={pki['sa_private']}",
        f"--service-account-key-file={pki['sa_public']}", "--service-cluster-ip-range=10.96.0.0/16",
        f"--default-not-ready-toleration-seconds={timers.toleration_seconds}",
        f"--default-unreachable-toleration-seconds={timers.toleration_seconds}",
        # Without it the server waits a full minute for its watchers to leave when it is asked to stop.
        "--shutdown-watch-termination-grace-period=1s",
        *heartbeat.APISERVER_ARGS,
    ]
    if audit:
        policy, log = audit
        command += [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
    return [*command, *extra]


def write_audit_policy(path):
    """Every request once, when it is answered, with the body of those that change something."""
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "Request", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "Metadata"}]}
    Path(path).write_text(json.dumps(policy))
    return path


def controller_manager(program, kubeconfig, pki, timers, extra=()):
    return [program, f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0",
            "--use-service-account-credentials=true",  # the default RBAC rules are per controller
            f"--service-account-private-key-file={pki['sa_private']}", f"--root-ca-file={pki['ca']}",
            "--kube-api-qps=1000", "--kube-api-burst=2000",
            f"--node-monitor-period={timers.node_monitor_period}",
            f"--node-monitor-grace-period={timers.node_monitor_grace}",
            f"--node-startup-grace-period={timers.node_monitor_grace}",
            f"--node-eviction-rate={timers.nodes_evicted_per_second}", *extra]


def scheduler(program, config):
    return [program, f"--config={config}", "--secure-port=0"]


def write_scheduler_config(path, kubeconfig, extra):
    """`extra` is merged in: for example {"extenders": [...], "percentageOfNodesToScore": 100}."""
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
              "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000},
              "leaderElection": {"leaderElect": False}, "podInitialBackoffSeconds": 1,
              "podMaxBackoffSeconds": 2, **(extra or {})}
    Path(path).write_text(json.dumps(config, indent=1))
    return path


def kwok(program, kubeconfig, timers, extra=()):
    return [program, f"--kubeconfig={kubeconfig}", f"--config={STAGES_FILE}",
            f"--manage-nodes-with-label-selector={heartbeat.SELECTOR}", "--node-ip=127.0.0.1",
            "--v=WARN",  # it logs every Lease renewal otherwise
            f"--node-lease-duration-seconds={timers.node_lease_seconds}", *extra]
