"""Where the API server is and who we are: from a kubeconfig (JSON, or the plain YAML that tools write), or from files."""

from __future__ import annotations

import base64
import json
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Connection:
    host: str
    port: int
    tls: ssl.SSLContext | None
    token: str = ""


def _scalar(text: str) -> Any:
    if text[:1] == '"':
        return json.loads(text)
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    if text[:1] == "{" and text[-1:] == "}":
        pairs = [pair.partition(":") for pair in text[1:-1].split(",") if pair.strip()]
        return {str(_scalar(key.strip())): _scalar(value.strip()) for key, _, value in pairs}
    if text == "[]":
        return []
    return {"true": True, "false": False, "null": None, "~": None, "": None}.get(text, text)


def _split_key(text: str, number: int) -> tuple[str, str]:
    key, colon, rest = text.partition(":")
    if not colon or (rest and rest[0] != " "):
        raise ValueError(f"kubeconfig line {number}: not 'key: value'")
    return str(_scalar(key.strip())), rest.strip()


def parse_yaml(text: str) -> Any:
    """What kubeconfigs are written in: maps and lists in block style, scalars and flat {maps} on one line. No anchors, no
    comments behind values, no folded text: a structure of another kind is a ValueError with its line."""
    if text.lstrip().startswith("{"):
        return json.loads(text)
    lines = [(n, len(line) - len(line.lstrip(" ")), line.strip())
             for n, line in enumerate(text.splitlines(), 1)
             if line.strip() and not line.lstrip().startswith("#") and line.strip() != "---"]
    value, rest = _block(lines, 0, lines[0][1] if lines else 0)
    if rest != len(lines):
        raise ValueError(f"kubeconfig line {lines[rest][0]}: unexpected indentation")
    return value


def _block(lines: list[tuple[int, int, str]], at: int, indent: int) -> tuple[Any, int]:
    if at < len(lines) and lines[at][2].startswith("- "):
        return _list(lines, at, indent)
    result: dict[str, Any] = {}
    while at < len(lines) and lines[at][1] == indent and not lines[at][2].startswith("- "):
        number, _, content = lines[at]
        key, value = _split_key(content, number)
        at += 1
        # A list may stand at its key's own indentation.
        deeper = at < len(lines) and (lines[at][1] > indent or (lines[at][1] == indent and lines[at][2].startswith("- ")))
        if value == "" and deeper:
            result[key], at = _block(lines, at, lines[at][1])
        else:
            result[key] = _scalar(value)
    return result, at


def _list(lines: list[tuple[int, int, str]], at: int, indent: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while at < len(lines) and lines[at][1] == indent and lines[at][2].startswith("- "):
        number, _, content = lines[at]
        inner = content[2:].lstrip()
        if ": " in inner or inner.endswith(":"):
            # The item's first key stands on the dash's line: as if it stood alone, further in.
            lines[at] = (number, indent + len(content) - len(inner), inner)
            item, at = _block(lines, at, lines[at][1])
        else:
            item, at = _scalar(inner), at + 1
        items.append(item)
    return items, at


def _material(entry: dict[str, Any], name: str, base: Path) -> str | None:
    """A PEM text that is given inline (base64) or by file name, relative to the kubeconfig."""
    if entry.get(f"{name}-data"):
        return base64.b64decode(entry[f"{name}-data"]).decode()
    if entry.get(name):
        return (base / entry[name]).read_text()
    return None


def connect(server: str, ca: str | None, cert: str | None, key: str | None, token: str = "") -> Connection:
    """From PEM texts. Certificates are verified; plain http is for a kubectl proxy on loopback."""
    url = urlsplit(server)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError(f"server {server!r} is not an http(s) URL")
    tls = None
    if url.scheme == "https":
        tls = ssl.create_default_context(cadata=ca)
        if cert and key:
            _load_client_certificate(tls, cert, key)
    return Connection(url.hostname, url.port or (443 if tls else 80), tls, token)


def _load_client_certificate(tls: ssl.SSLContext, cert: str, key: str) -> None:
    # OpenSSL's Python binding takes these from files only: a private one, gone at once.
    descriptor, name = tempfile.mkstemp(prefix="lab-client-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(cert.rstrip() + "\n" + key.rstrip() + "\n")
        tls.load_cert_chain(name)
    finally:
        os.unlink(name)


def from_kubeconfig(path: Path) -> Connection:
    try:
        return _from_config(parse_yaml(path.read_text()), path)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a kubeconfig ({type(error).__name__}: {error})") from error


def _from_config(config: Any, path: Path) -> Connection:
    def named(section: str, kind: str, name: str) -> dict[str, Any]:
        for entry in config.get(section) or []:
            if entry.get("name") == name:
                return entry.get(kind) or {}
        raise ValueError(f"{path}: no {kind} {name!r}")

    context = named("contexts", "context", config.get("current-context") or "")
    cluster = named("clusters", "cluster", context["cluster"])
    user = named("users", "user", context["user"])
    base = path.parent
    return connect(cluster["server"], _material(cluster, "certificate-authority", base),
                   _material(user, "client-certificate", base), _material(user, "client-key", base),
                   str(user.get("token") or ""))
