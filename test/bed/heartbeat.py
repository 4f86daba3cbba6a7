"""Lets the annotation kwok.x-k8s.io/node=fake alone decide whether kwok plays a node's kubelet.

kwok 0.7.0 filters annotations on its own side and drops the very event that takes the annotation away, so
it would go on renewing the Lease of a machine that was switched off. Labels it filters in its watch, where
removal is a DELETED event. An admission policy therefore keeps a label equal to the annotation, in the same write.
"""
from bed import objects
from bed.client import ApiError

KWOK_LABEL = "bed.kwatt.dev/kubelet"
SELECTOR = f"{KWOK_LABEL}=fake"
APISERVER_ARGS = ("--feature-gates=MutatingAdmissionPolicy=true",
                  "--runtime-config=admissionregistration.k8s.io/v1beta1=true")
NAME = "bed-kubelet-label"
POINTER = "/metadata/labels/" + KWOK_LABEL.replace("/", "~1")

ANNOTATED = (f"has(object.metadata.annotations) && '{objects.KWOK_ANNOTATION}' in object.metadata.annotations && "
             f"object.metadata.annotations['{objects.KWOK_ANNOTATION}'] == 'fake'")
LABELLED = f"has(object.metadata.labels) && '{KWOK_LABEL}' in object.metadata.labels"
PATCH = f"""
({LABELLED}) ? [JSONPatch{{op: "remove", path: "{POINTER}"}}]
: has(object.metadata.labels) ? [JSONPatch{{op: "add", path: "{POINTER}", value: "fake"}}]
: [JSONPatch{{op: "add", path: "/metadata/labels", value: {{"{KWOK_LABEL}": "fake"}}}}]
"""


def manifests():
    """The policy and its binding."""
    meta = {"apiVersion": "admissionregistration.k8s.io/v1beta1", "metadata": {"name": NAME}}
    policy = {**meta, "kind": "MutatingAdmissionPolicy", "spec": {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"],
                                                "operations": ["CREATE", "UPDATE"]}]},
        "matchConditions": [{"name": "differs", "expression": f"({ANNOTATED}) != ({LABELLED})"}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": PATCH}}]}}
    binding = {**meta, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": NAME}}
    return policy, binding


def install(api):
    """Creates both; see in_force()."""
    for plural, manifest in zip(("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"), manifests()):
        api.request("POST", f"/apis/admissionregistration.k8s.io/v1beta1/{plural}", manifest)


def in_force(api):
    """Whether the API server applies the policy already (it reads policies from its own watch), by a dry run."""
    probe = objects.node("bed-probe")
    try:
        answer = api.request("POST", "/api/v1/nodes?dryRun=All", probe)
    except ApiError as error:
        if error.status >= 500:
            return False  # the policy is known but not compiled yet
        raise
    return answer["metadata"]["labels"].get(KWOK_LABEL) == "fake"
