"""What manifests/ allow a program, and what an audit log says it has asked for."""
import json
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource; scope "*" is the whole cluster, else a namespace. `names`: () is all."""
    scope: str
    group: str
    resource: str
    verb: str
    names: tuple = ()

    def __str__(self):
        where = "" if self.scope == "*" else f" in {self.scope}"
        only = f" ({', '.join(self.names)} only)" if self.names else ""
        return f"{self.verb} {self.group or 'core'}/{self.resource}{only}{where}"

    def covers(self, request):
        # The name of a new object stands in its body, so the API server does not look at names then.
        named = not self.names or request.name in self.names
        return (self.scope in ("*", request.namespace) and named and
                (self.group, self.resource, self.verb) == (request.group, request.resource, request.verb))


@dataclass(frozen=True, order=True)
class Request:
    group: str
    resource: str  # with its subresource: nodes/status
    verb: str
    namespace: str
    name: str
    refused: bool

    def __str__(self):
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.group or 'core'}/{self.resource} {self.name}{where}"


def documents(folder=ROOT / "manifests"):
    for path in sorted(folder.glob("*.yaml")):
        yield from (document for document in yaml.safe_load_all(path.read_text()) if document)


def rights_of(account, namespace="kwatt-system"):
    """Every right that manifests/ give the ServiceAccount."""
    found, known = set(), list(documents())
    roles = {(d["kind"], d["metadata"].get("namespace", ""), d["metadata"]["name"]): d["rules"]
             for d in known if d["kind"] in ("Role", "ClusterRole")}
    for binding in known:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        subjects = [(s["kind"], s.get("namespace"), s["name"]) for s in binding["subjects"]]
        if ("ServiceAccount", namespace, account) not in subjects:
            continue
        scope = binding["metadata"].get("namespace", "*")
        kind = binding["roleRef"]["kind"]
        rules = roles[kind, "" if kind == "ClusterRole" else scope, binding["roleRef"]["name"]]
        for rule in rules:
            found |= {Right(scope, group, resource, verb, tuple(rule.get("resourceNames", ())))
                      for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}
    return found


def requests_of(audit_log, user):
    """Every request of the user about an object, each once."""
    found = set()
    for line in Path(audit_log).read_text().splitlines():
        entry = json.loads(line)
        about = entry.get("objectRef")
        if entry["user"]["username"] != user or not about:
            continue
        resource = about["resource"] + (f"/{about['subresource']}" if "subresource" in about else "")
        refused = entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        found.add(Request(about.get("apiGroup", ""), resource, entry["verb"], about.get("namespace", ""),
                          about.get("name", ""), refused))
    return found
