"""Kubernetes objects as plain dicts with sensible defaults."""

KWOK_ANNOTATION = "kwok.x-k8s.io/node"


def namespace(name, labels=None):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}


def service_account(name, namespace="default"):
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def node(name, cpu="8", memory="32Gi", pods=110, zone=None, labels=None, annotations=None, taints=None,
         extended=None, kwok=True, unschedulable=False, ready=False):
    """A kwok node as its kubelet would register it. `taints` are dicts {key, value?, effect}; `extended` adds
    resources such as {"example.com/gpu": 2}. With kwok=False nothing plays its kubelet: it stays NotReady, or, with
    ready=True, Ready until a controller-manager misses its heartbeat."""
    resources = {"cpu": str(cpu), "memory": str(memory), "pods": str(pods), "ephemeral-storage": "100Gi",
                 **{key: str(value) for key, value in (extended or {}).items()}}
    all_labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                  "type": "kwok", **(labels or {})}
    if zone:
        all_labels["topology.kubernetes.io/zone"] = zone
    all_annotations = {"node.alpha.kubernetes.io/ttl": "0", **(annotations or {})}
    if kwok:
        all_annotations[KWOK_ANNOTATION] = "fake"
    spec = {"providerID": f"kwok://{name}"}
    if taints:
        spec["taints"] = taints
    if unschedulable:
        spec["unschedulable"] = True
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}] if ready else []
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": all_labels, "annotations": all_annotations},
        "spec": spec,
        "status": {"capacity": resources, "allocatable": dict(resources), "conditions": conditions,
                   "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux", "kernelVersion": "6.1.0",
                                "osImage": "kwok", "containerRuntimeVersion": "kwok://0.7.0",
                                "kubeletVersion": "v1.34.4", "kubeProxyVersion": "", "machineID": name,
                                "systemUUID": name, "bootID": f"{name}-boot-1"}},
    }


def pod_spec(cpu="100m", memory="128Mi", node_name=None, node_selector=None, tolerations=None, affinity=None,
             spread=None, host_ports=(), volumes=None, priority_class=None, grace_seconds=1, scheduler=None,
             extended=None):
    """The spec of a pod with one container; resources are requests (None leaves one out)."""
    requests = {key: str(value) for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    container = {"name": "main", "image": "example.invalid/app:1", "resources": {"requests": requests}}
    if extended:
        amounts = {key: str(value) for key, value in extended.items()}
        requests.update(amounts)
        container["resources"]["limits"] = amounts
    if host_ports:
        container["ports"] = [{"containerPort": port, "hostPort": port} for port in host_ports]
    optional = {"nodeName": node_name, "nodeSelector": node_selector, "tolerations": tolerations,
                "affinity": affinity, "topologySpreadConstraints": spread, "volumes": volumes,
                "priorityClassName": priority_class, "schedulerName": scheduler}
    return {"containers": [container], "terminationGracePeriodSeconds": grace_seconds,
            **{key: value for key, value in optional.items() if value is not None}}


def pod(name, namespace="default", labels=None, annotations=None, owner=None, **spec):
    """A pod; further keywords are those of pod_spec(). `owner` is an existing object that becomes its controller."""
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels or {"app": name}),
                "annotations": dict(annotations or {})}
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
                                        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
                                        "controller": True, "blockOwnerDeletion": True}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}


def deployment(name, replicas=1, namespace="default", labels=None, pod_annotations=None, **spec):
    """A Deployment whose pods carry the label app=<name>; further keywords are those of pod_spec()."""
    selector = {"app": name}
    template = {"metadata": {"labels": {**(labels or {}), **selector}, "annotations": dict(pod_annotations or {})},
                "spec": pod_spec(**spec)}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace, "labels": {**(labels or {}), **selector}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": selector}, "template": template}}


def daemon_set(name, namespace="default", **spec):
    """A DaemonSet that runs on every node: it tolerates everything unless told otherwise."""
    spec.setdefault("tolerations", [{"operator": "Exists"}])
    body = deployment(name, namespace=namespace, **spec)
    del body["spec"]["replicas"]
    return {**body, "kind": "DaemonSet"}


def disruption_budget(name, match_labels, min_available=None, max_unavailable=None, namespace="default"):
    """A PodDisruptionBudget; numbers or percentages ("50%")."""
    limits = {"minAvailable": min_available, "maxUnavailable": max_unavailable}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": match_labels},
                     **{key: value for key, value in limits.items() if value is not None}}}


def condition(obj, kind):
    """The condition of this type in status.conditions, or None."""
    conditions = obj.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), None)


def node_is_ready(obj):
    ready = condition(obj, "Ready")
    return ready is not None and ready["status"] == "True"


def pod_is_running(obj):
    return obj.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in obj["metadata"]
