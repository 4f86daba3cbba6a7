"""Kubeconfig files, and kubectl with one of them."""
import base64
import json
import os
import subprocess
from pathlib import Path


class CommandError(RuntimeError):
    """A kubectl call that failed; .stdout, .stderr and .returncode are its own."""

    def __init__(self, args, answer):
        self.returncode, self.stdout, self.stderr = answer.returncode, answer.stdout, answer.stderr
        super().__init__(f"kubectl {' '.join(args)}: exit {answer.returncode}: {answer.stderr.strip()}")


def run_kubectl(program, kubeconfig, args, input=None, check=True, timeout=60):
    """Standard output; see Bed.kubectl()."""
    if input is not None and not isinstance(input, str):
        items = input if isinstance(input, list) else [input]
        input = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    env = dict(os.environ, KUBECONFIG=str(kubeconfig),
               KUBECACHEDIR=str(Path(kubeconfig).parent / "kubectl-cache"))  # not in the home directory
    stdin = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
    args = [str(arg) for arg in args]
    answer = subprocess.run([str(program), *args], env=env, capture_output=True, text=True, timeout=timeout, **stdin)
    if check and answer.returncode != 0:
        raise CommandError(args, answer)
    return answer.stdout


def write_kubeconfig(path, server, ca_file, cert=None, token=None):
    """A self-contained kubeconfig (files embedded) for a client certificate pair or a token."""
    if cert:
        user = (f"    client-certificate-data: {encoded(cert[0])}\n"
                f"    client-key-data: {encoded(cert[1])}\n")
    else:
        user = f"    token: {token}\n"
    text = (
        "apiVersion: v1\nkind: Config\ncurrent-context: bed\n"
        "clusters:\n- name: bed\n  cluster:\n"
        f"    server: {server}\n    certificate-authority-data: {encoded(ca_file)}\n"
        f"users:\n- name: user\n  user:\n{user}"
        "contexts:\n- name: bed\n  context: {cluster: bed, user: user}\n")
    path = Path(path)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
    return path


def encoded(path):
    return base64.b64encode(Path(path).read_bytes()).decode()
