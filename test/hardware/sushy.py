"""sushy-tools 2.2.0 (OpenStack's Redfish emulator, which we did not write), over TLS with basic authentication.

It is installed once from PyPI into the cache directory. Its fake systems change state after a random 1-11 s; a
wrapper makes that 1 s. With power=True the wrapper also adds what sushy-tools does not have: a Power resource of the
chassis (DSP0268) with a reading and a limit. That part is our own model, and proves no more than that.
"""
import fcntl
import os
import signal
import socket
import subprocess
import uuid
import venv

from bed.build import cache_root
from bed.process import Process, wait_until

PACKAGES = ("sushy-tools==2.2.0", "bcrypt==5.0.0")
WRAPPER = """
import random, sys
from sushy_tools.emulator.main import main
random.randint = lambda low, high: low
{power}
sys.exit(main())
"""
OUR_POWER = """
import json, re
from flask import request
from sushy_tools.emulator.main import app
limit, version = None, 1

@app.route('/redfish/v1/Chassis/<chassis>/Power', methods=['GET', 'PATCH'])
def our_power(chassis):
    global limit, version
    path, etag = '/redfish/v1/Chassis/%s/Power' % chassis, 'W/"%d"' % version
    if request.method == 'PATCH':
        if request.headers.get('If-Match') not in (etag, '*', None):
            return {'error': {'message': 'the resource has changed'}}, 412
        watts = request.json['PowerControl'][0]['PowerLimit']['LimitInWatts']
        if watts is not None and not 100 <= watts <= 500:
            return {'error': {'message': 'no', '@Message.ExtendedInfo': [
                {'MessageId': 'Base.1.0.PropertyValueNotInList', 'Message': '%g is not within 100 to 500' % watts}]}}, 400
        limit, version = watts, version + 1
        return '', 204
    drawn = 300 if limit is None else min(300, limit)
    return {'@odata.id': path, '@odata.type': '#Power.v1_7_1.Power', 'Id': 'Power', 'Name': 'Power', 'PowerControl': [
        {'@odata.id': path + '#/PowerControl/0', 'MemberId': '0', 'PowerConsumedWatts': drawn, 'PowerCapacityWatts': 500,
         'PowerLimit': {'LimitInWatts': limit}}]}, 200, {'ETag': etag}

@app.after_request
def our_link(response):
    if re.fullmatch('/redfish/v1/Chassis/[^/]+', request.path) and response.is_json:
        body = response.get_json()
        body['Power'] = {'@odata.id': request.path + '/Power'}
        response.set_data(json.dumps(body))
    return response
"""


def python():
    """The interpreter of the virtual environment, which is made at the first call on this machine."""
    folder = cache_root() / "sushy-tools-2.2.0"
    folder.parent.mkdir(parents=True, exist_ok=True)
    program = folder / "bin" / "python"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            venv.create(folder, with_pip=True, clear=True)
            subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
                           check=True, timeout=300)
            (folder / "complete").touch()
    return program


class Sushy:
    """One emulator with one system that is on. system_url is a kwatt address."""

    USER, PASSWORD = "admin", "emu-l8or"

    def __init__(self, directory, cert, key, power=False, systems=1):
        interpreter = python()
        self.uuid = str(uuid.uuid4())
        hashed = subprocess.run([interpreter, "-c", "import bcrypt, sys; print(bcrypt.hashpw(sys.stdin.buffer.read(), "
                                 "bcrypt.gensalt(4)).decode())"], input=self.PASSWORD.encode(), capture_output=True,
                                check=True, timeout=60).stdout.decode().strip()
        (directory / "htpasswd").write_text(f"{self.USER}:{hashed}\n")
        (directory / "state").mkdir()
        systems = [{"uuid": self.uuid if i == 0 else str(uuid.uuid4()), "name": f"node{i + 1}", "power_state": "On",
                    "external_notifier": False, "nics": []} for i in range(systems)]
        (directory / "emu.conf").write_text("\n".join([
            "SUSHY_EMULATOR_FAKE_DRIVER = True", f"SUSHY_EMULATOR_FAKE_SYSTEMS = {systems!r}",
            f"SUSHY_EMULATOR_STATE_DIR = {str(directory / 'state')!r}", f"SUSHY_EMULATOR_SSL_CERT = {str(cert)!r}",
            f"SUSHY_EMULATOR_SSL_KEY = {str(key)!r}", f"SUSHY_EMULATOR_AUTH_FILE = {str(directory / 'htpasswd')!r}"]))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = Process("sushy-emulator", [interpreter, "-c", WRAPPER.format(power=OUR_POWER if power else ""),
                                                  "--config", str(directory / "emu.conf"),
                                                  "--interface", "127.0.0.1", "--port", str(self.port)],
                               directory / "sushy.log", env={**os.environ, "PYTHONUNBUFFERED": "1"})
        self.process.start()
        wait_until(self._listens, 30, "sushy-emulator to listen", every=0.1)

    def _listens(self):
        self.process.check()
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    @property
    def system_url(self):
        return f"redfish+https://127.0.0.1:{self.port}/redfish/v1/Systems/{self.uuid}"

    def stop(self):
        self.process.signal(signal.SIGTERM)
        self.process.stop(grace=5)
