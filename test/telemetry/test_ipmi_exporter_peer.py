"""Temperatures and watts from a management controller (OpenIPMI's ipmi_sim) through Debian's real
prometheus-ipmi-exporter and prometheus to kwatt's sources: nothing is replayed."""
import subprocess

import pytest

import prometheus_server as peers
from bed.process import wait_until
from ipmi_sim import IpmiSim
from lab.site import program


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ipmi-exporter")
    sim = IpmiSim(folder, temperatures=("Inlet Temp", "CPU1 Temp", "CPU2 Temp"), standard_port=True)
    exporter = prometheus = None
    try:
        for name, celsius in (("Inlet Temp", 23), ("CPU1 Temp", 48), ("CPU2 Temp", 51)):
            sim.set(name, celsius)
        exporter = peers.IpmiExporter(folder, sim).start()
        prometheus = peers.Prometheus(folder / "prometheus", {"ipmi": [
            {"target": exporter.target, "path": "/ipmi", "params": exporter.params, "labels": {"instance": "10.0.0.1:9290"}}]})
        prometheus.start().wait_for("ipmi_temperature_celsius > 0", 3)
        yield sim, prometheus
    finally:
        for peer in (prometheus, exporter, sim):
            if peer is not None:
                peer.stop()


def ask(prometheus, *arguments):
    done = subprocess.run([program("telemetry_probe", "test"), "--url", prometheus.url, "--node", "n1=10.0.0.1", *arguments],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_sensors_of_a_bmc_become_temperatures_of_the_node(chain):
    sim, prometheus = chain
    assert ask(prometheus, "--temperatures")[0] == "n1 23000 48000 51000 -"
    sim.set("Inlet Temp", 27)
    wait_until(lambda: ask(prometheus, "--temperatures")[0] == "n1 27000 48000 51000 -", 20, "the new reading", every=0.5)


def test_the_draw_of_a_bmc_becomes_the_nodes_watts(chain):
    sim, prometheus = chain
    sim.set("draw", 204)
    wait_until(lambda: ask(prometheus, "--exporter", "ipmi-exporter")[0].split()[:4] ==
               ["n1", "204000", "ipmi-exporter", "machine"], 20, "the new draw", every=0.5)
