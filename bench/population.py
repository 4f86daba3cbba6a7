"""Nodes and pods as large as those of a real cluster: with everything that kubelets, controllers and
admission write into them, most of which kwatt does not use.

Three fifths of the pods belong to ReplicaSets, a fifth to DaemonSets, a fifth to StatefulSets, whose pods are
the hard case: each has labels of its own.
"""
import hashlib
import uuid

NAMESPACES = [f"team-{number:02}" for number in range(20)]
REPLICAS_PER_SET = 40
MEMBERS_PER_STATEFUL_SET = 5
IMAGES_PER_NODE = 30
STAMP = "2026-11-20T21:44:03Z"


def text_hash(text, length=64):
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def uid_of(text):
    return str(uuid.UUID(text_hash(text, 32)))


def node_name(index):
    return f"ip-10-{index >> 8}-{index & 255}-7.eu-north-1.compute.internal"


def node(index):
    """A Ready node as a kubelet, a cloud provider and a CSI driver leave it."""
    name, zone = node_name(index), f"eu-north-1{'abc'[index % 3]}"
    labels = {
        "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": "m6i.4xlarge", "topology.kubernetes.io/region": "eu-north-1",
        "topology.kubernetes.io/zone": zone, "topology.ebs.csi.aws.com/zone": zone,
        "example.com/pool": f"general-{index % 7}", "example.com/rack": f"rack-{index // 40:03}"}
    annotations = {
        "csi.volume.kubernetes.io/nodeid": f'{{"ebs.csi.aws.com":"i-{text_hash(name, 17)}"}}',
        "node.alpha.kubernetes.io/ttl": "300",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    address, subnet = f"10.{index >> 8}.{index & 255}.7", f"10.{index >> 8}.{index & 255}.0/24"
    resources = {"cpu": "16", "memory": "64388364Ki", "pods": "110", "ephemeral-storage": "101430960Ki",
                 "hugepages-1Gi": "0", "hugepages-2Mi": "0"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"providerID": f"aws:///{zone}/i-{text_hash(name, 17)}", "podCIDR": subnet, "podCIDRs": [subnet]},
        "status": {
            "capacity": resources,
            "allocatable": {**resources, "cpu": "15890m", "memory": "61217620Ki"},
            "conditions": [_node_condition(*one) for one in (
                ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                ("Ready", "True", "KubeletReady", "kubelet is posting ready status"))],
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name},
                          {"type": "InternalDNS", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux", "kernelVersion": "6.1.0-28-amd64",
                         "osImage": "Debian GNU/Linux 12 (bookworm)", "containerRuntimeVersion": "containerd://1.7.24",
                         "kubeletVersion": "v1.34.4", "kubeProxyVersion": "", "machineID": text_hash(name, 32),
                         "systemUUID": uid_of(name), "bootID": uid_of(f"boot of {name}")},
            "images": [_image(image) for image in range(IMAGES_PER_NODE)]}}


def _node_condition(kind, status, reason, message):
    return {"type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": STAMP, "lastTransitionTime": STAMP}


def _image(number):
    name = f"registry.example.invalid/platform/service-{number}"
    return {"names": [f"{name}@sha256:{text_hash(name)}", f"{name}:v1.{number}.0"], "sizeBytes": 41_000_000 + number}


def pod(index, nodes):
    """A running pod, bound to one of `nodes` nodes."""
    kind = ("ReplicaSet", "ReplicaSet", "ReplicaSet", "DaemonSet", "StatefulSet")[index % 5]
    serial = index // 5 * 3 + index % 5 if kind == "ReplicaSet" else index // 5  # within its kind
    node = node_name(serial % nodes)
    if kind == "ReplicaSet":
        number = serial // REPLICAS_PER_SET
        app, template = f"service-{number}", text_hash(f"template {number}", 10)
        owner = f"{app}-{template}"
        name = f"{owner}-{text_hash(f'pod {serial}', 5)}{serial % REPLICAS_PER_SET}"
        extra = {"pod-template-hash": template}
    elif kind == "DaemonSet":
        number = serial // nodes
        app = owner = f"node-agent-{number}"
        name = f"{app}-{text_hash(f'daemon {serial}', 12)}"
        extra = {"controller-revision-hash": text_hash(app, 10), "pod-template-generation": "3"}
    else:
        number = serial // MEMBERS_PER_STATEFUL_SET
        app = owner = f"database-{number}"
        member = serial % MEMBERS_PER_STATEFUL_SET
        name = f"{app}-{member}"
        extra = {"controller-revision-hash": f"{app}-{text_hash(app, 10)}",
                 "statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(member)}
    namespace = NAMESPACES[number % len(NAMESPACES)]
    labels = {"app.kubernetes.io/name": app, "app.kubernetes.io/instance": f"{app}-production",
              "app.kubernetes.io/version": "1.12.0", "app.kubernetes.io/managed-by": "Helm", "team": namespace, **extra}
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": "9090",
                   "checksum/config": text_hash(app), "kubectl.kubernetes.io/restartedAt": STAMP}
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations,
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": owner,
                                     "uid": uid_of(f"{kind} {namespace}/{owner}"), "controller": True,
                                     "blockOwnerDeletion": True}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": _pod_spec(kind, app, name, node), "status": _pod_status(index, app, name)}


def _pod_spec(kind, app, name, node):
    volumes = [{"name": "config", "configMap": {"name": f"{app}-config"}}, {"name": "cache", "emptyDir": {}},
               {"name": "token", "projected": {"sources": [
                   {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                   {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}}]
    spec = {"nodeName": node, "serviceAccountName": "default", "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 30, "volumes": volumes,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
            "containers": [_container("main", app, "500m", "1Gi", 4), _container("proxy", "proxy", "100m", "128Mi", 1)]}
    if kind == "DaemonSet":
        spec["tolerations"] = [{"operator": "Exists"}]
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}}}
    else:
        selector = {"matchLabels": {"app.kubernetes.io/name": app}}
        spec["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                                              "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]
    if kind == "StatefulSet":
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}})
    return spec


def _container(name, app, cpu, memory, variables):
    env = [{"name": f"SETTING_{number}", "value": f"https://backend-{number}.{app}.svc.cluster.local:8443/api/v1"}
           for number in range(variables)]
    return {"name": name, "image": f"registry.example.invalid/platform/{app}:v1.12.0", "env": env,
            "args": ["--config=/etc/app/config.yaml", "--listen=:8080", f"--name={name}"],
            "ports": [{"name": f"{name}-http", "containerPort": 8080}],
            "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/app"},
                             {"name": "cache", "mountPath": "/var/cache/app"},
                             {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                              "readOnly": True}],
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}}


def _pod_status(index, app, name):
    address = f"10.{128 + (index >> 16)}.{(index >> 8) & 255}.{index & 255}"
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": STAMP}
                  for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")]
    containers = [{
        "name": container, "image": f"registry.example.invalid/platform/{image}:v1.12.0",
        "imageID": f"registry.example.invalid/platform/{image}@sha256:{text_hash(image)}",
        "containerID": f"containerd://{text_hash(f'{name} {container}')}", "ready": True, "started": True,
        "restartCount": 0, "state": {"running": {"startedAt": STAMP}}, "lastState": {}}
        for container, image in (("main", app), ("proxy", "proxy"))]
    return {"phase": "Running", "conditions": conditions, "containerStatuses": containers, "qosClass": "Burstable",
            "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}], "podIP": address, "podIPs": [{"ip": address}],
            "startTime": STAMP}
