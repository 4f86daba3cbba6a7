"""Kubeconfig files."""
import base64
import os
from pathlib import Path


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
