"""A room in this process with short times, and clients for its two APIs."""

import base64
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab import RedfishOptions, RoomConfig, RoomThread

PASSWORD = "admin:s3cret"


def request(url, method="GET", body=None, headers=None, tls=None):
    """A reply of any status: status, headers, text, and json() if it is that."""
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    call = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
    try:
        reply = urllib.request.urlopen(call, timeout=10, context=tls)
    except urllib.error.HTTPError as error:
        reply = error
    with reply:
        text = reply.read().decode()
        return SimpleNamespace(status=reply.status, headers=reply.headers, text=text, json=lambda: json.loads(text))


@pytest.fixture
def tmp_path():
    """In memory where there is such a place: a machine has some 150 files, and its room is a matter of a moment."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="lab-", dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def make_room(tmp_path):
    """make_room(**fields of RoomConfig): started, and stopped after the test."""
    rooms = []

    def make(**fields):
        room = RoomThread(RoomConfig(dir=str(tmp_path / f"room{len(rooms)}"), **{"tick_seconds": 0.01, **fields}))
        room.start()
        rooms.append(room)
        room.http = lambda path, *args, **kwargs: request(room.control_url + path, *args, **kwargs)
        return room

    yield make
    for room in rooms:
        room.stop()


@pytest.fixture
def room(make_room):
    """node1, which boots and shuts down in a fifth of a second."""
    room = make_room()
    room.add_machine("node1", boot_seconds=0.2, shutdown_seconds=0.2)
    return room


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("no openssl program to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                    "-days", "2", "-subj", "/CN=lab", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    return SimpleNamespace(cert=str(cert), key=str(key))


@pytest.fixture
def redfish(make_room, certificate, tmp_path):
    """A room with node1 and node2 behind Redfish; .get/.post/.patch take a path and answer as request() does."""
    auth = tmp_path / "auth"
    auth.write_text(PASSWORD + "\n")
    room = make_room(redfish=RedfishOptions(certificate.cert, certificate.key, str(auth), per_machine_ports=True))
    for name in ("node1", "node2"):
        room.add_machine(name, boot_seconds=0.2, shutdown_seconds=0.2)
    tls = ssl.create_default_context(cafile=certificate.cert)

    def call(method):
        def send(path, body=None, credentials=PASSWORD, base=None, **headers):
            if credentials:
                headers["Authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()
            names = {key.replace("_", "-"): value for key, value in headers.items()}
            return request((base or room.redfish_url) + path, method, body, names, tls)
        return send

    return SimpleNamespace(room=room, get=call("GET"), post=call("POST"), patch=call("PATCH"), delete=call("DELETE"))
