"""kwatt's Prometheus source against Debian's real prometheus and prometheus-node-exporter."""
import subprocess
import threading
import time

import pytest

import prometheus_server as peers
from bed.process import wait_until
from lab.site import program

NODES = {"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.3"}


def ask(url, *arguments, check=True):
    """(lines of the answer) or, with check=False, the error."""
    nodes = [part for name, ip in NODES.items() for part in ("--node", f"{name}={ip}")]
    done = subprocess.run([program("telemetry_probe", "test"), "--url", url, *nodes, *arguments],
                          capture_output=True, text=True, timeout=30)
    if check:
        assert done.returncode == 0, done.stderr
        return [line.split(" ", 4) for line in done.stdout.splitlines()]
    assert done.returncode == 1, done.stdout
    return done.stderr.strip()


def sysfs(folder):
    """A machine with an ACPI power meter, another power sensor, and two sockets of which one counts twice."""
    def write(path, text):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{text}\n")

    for number, (name, microwatts) in enumerate([("power_meter", 187_000_000), ("amdgpu", 33_000_000)]):
        device = f"devices/card{number}"
        write(f"{device}/hwmon/hwmon{number}/name", name)
        write(f"{device}/hwmon/hwmon{number}/power1_average", microwatts)
        (folder / f"{device}/hwmon/hwmon{number}/device").symlink_to(folder / device)
        (folder / "class/hwmon").mkdir(parents=True, exist_ok=True)
        (folder / f"class/hwmon/hwmon{number}").symlink_to(folder / f"{device}/hwmon/hwmon{number}")
    for zone, name in [("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1"), ("intel-rapl-mmio:0", "package-0")]:
        write(f"class/powercap/{zone}/name", name)
        write(f"class/powercap/{zone}/energy_uj", 0)
        write(f"class/powercap/{zone}/max_energy_range_uj", 262_143_328_850)
    return folder


def burn(folder, stop):
    """15 W in each zone; two of the three are real."""
    started = time.monotonic()
    while not stop.wait(0.1):
        for zone in ("intel-rapl:0", "intel-rapl:1", "intel-rapl-mmio:0"):
            new = folder / f"class/powercap/{zone}/energy_uj.new"
            new.write_text(f"{int(15e6 * (time.monotonic() - started))}\n")
            new.rename(folder / f"class/powercap/{zone}/energy_uj")


@pytest.fixture(scope="module")
def exporters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exporters")
    server = peers.Server()
    server.answers.update({
        "/kepler-n1": peers.replayed_kepler("n1", 150.5, 80.25, 60, platform=210),
        "/kepler-n2": peers.replayed_kepler("n2", 90, 40, 30),
        "/scaphandre": peers.replayed_scaphandre(42_500_000),
        "/ipmi": peers.replayed_ipmi(199),
        "/bad": 'odd_watts{node="n1"} NaN\nodd_watts{node="n2"} -3\nodd_watts{node="n3"} 4294967295\n'
                'odd_watts{node="other"} 5\nodd_watts{job_name="x"} 5\n',
        "/sensors-n1": peers.replayed_ipmi_temperatures(Ambient=21, Inlet_Temp=19, CPU1=48.5, CPU2_Temp=51, Exhaust=40),
        "/sensors-n2": peers.replayed_ipmi_temperatures(Inlet_Temp=24, CPU1="NaN"),
        "/air": 'rack_pressure_pascal{node="n1"} 12.5\nrack_pressure_pascal{node="n9"} 3\n',
        "/twice": 'twice_watts{node="n1",psu="1"} 100\ntwice_watts{node="n1",psu="2"} 90\ntwice_watts{node="n2"} 70\n',
    })
    stop = threading.Event()
    burner = threading.Thread(target=burn, args=(sysfs(folder / "sys"), stop), daemon=True)
    burner.start()
    exporter = peers.NodeExporter(folder, folder / "sys").start()
    here = f"127.0.0.1:{server.port}"
    prometheus = peers.Prometheus(folder / "prometheus", {
        "kepler": [{"target": here, "path": "/kepler-n1"}, {"target": here, "path": "/kepler-n2"}],
        "scaphandre": [{"target": here, "path": "/scaphandre", "labels": {"instance": "10.0.0.2:8080"}}],
        "ipmi": [{"target": here, "path": "/ipmi", "labels": {"instance": "n3:9290"}}],
        "node": [{"target": exporter.target, "labels": {"instance": "10.0.0.1:9100"}}],
        "sensors": [{"target": here, "path": "/sensors-n1", "labels": {"instance": "10.0.0.1:9290"}},
                    {"target": here, "path": "/sensors-n2", "labels": {"instance": "n2:9290"}}],
        "air": [{"target": here, "path": "/air"}],
        "bad": [{"target": here, "path": "/bad"}], "twice": [{"target": here, "path": "/twice"}],
    }).start()
    prometheus.wait_for("kepler_node_cpu_watts", 6)
    prometheus.wait_for("node_hwmon_power_average_watt", 2)
    prometheus.wait_for("ipmi_temperature_celsius", 7)
    prometheus.wait_for("rack_pressure_pascal", 2)
    prometheus.wait_for("rate(node_rapl_package_joules_total[2m])", 3)
    yield server, prometheus, folder
    stop.set()
    burner.join()
    prometheus.stop()
    exporter.stop()
    server.stop()


KEPLER = ("--label", "node_name")


def test_temperatures_of_all_nodes_by_what_vendors_call_the_sensors(exporters):
    _, prometheus, _ = exporters
    lines = [" ".join(line) for line in ask(prometheus.url, "--temperatures", "--pressure-query", "rack_pressure_pascal")]
    assert lines[:2] == ["n1 21000 48500 51000 12.500000", "n2 24000 - - -"]
    assert sorted(line.split(":")[0] for line in lines[2:]) == ["rejected not_a_number 1", "rejected unknown_node 1"]


@pytest.mark.parametrize("exporter, labels, want", [
    ("kepler-platform", KEPLER, [["n1", "210000", "machine"]]),
    ("kepler-psys", KEPLER, [["n1", "150500", "machine"], ["n2", "90000", "machine"]]),
    ("kepler", KEPLER, [["n1", "80250", "packages"], ["n2", "40000", "packages"]]),
    ("scaphandre", (), [["n2", "42500", "packages"]]),
    ("ipmi-exporter", (), [["n3", "199000", "machine"]]),
    ("node-exporter-hwmon", (), [["n1", "187000", "machine"]]),
])
def test_one_query_gives_the_watts_of_all_nodes(exporters, exporter, labels, want):
    _, prometheus, _ = exporters
    lines = ask(prometheus.url, "--exporter", exporter, *labels)
    assert [[node, milliwatts, scope] for node, milliwatts, source, scope, age in lines] == want
    for _, _, source, _, age in lines:
        assert source == exporter
        assert -1000 < int(age) < 5000  # of the scrape, once a second


def test_joules_of_all_sockets_become_watts_and_the_copy_is_not_counted(exporters):
    _, prometheus, _ = exporters

    def settled():
        lines = [line for line in ask(prometheus.url, "--exporter", "node-exporter-rapl") if line[0] == "n1"]
        return lines and lines[0][3] == "packages" and 27_000 < int(lines[0][1]) < 33_000

    # At once, not when a span of minutes is full.
    wait_until(settled, 20, "30 W", every=0.5)


def test_a_query_of_the_operators_own(exporters):
    _, prometheus, _ = exporters
    promql = 'kepler_node_cpu_watts{zone="package"} + on (node_name) group_left () (0 * kepler_platform_watts + 10) # ok'
    lines = ask(prometheus.url, "--query", promql, *KEPLER)
    assert [line[:2] for line in lines] == [["n1", "90250"]]


def test_values_that_cannot_be_are_rejected_one_by_one(exporters):
    _, prometheus, _ = exporters
    lines = ask(prometheus.url, "--query", "odd_watts", "--label", "node")
    assert sorted(line[1] + " " + line[2] for line in lines) == [
        "no_label 1:", "not_a_number 1:", "out_of_range 2:", "unknown_node 1:"]


def test_two_series_for_a_node_are_not_added_and_not_chosen_from(exporters):
    _, prometheus, _ = exporters
    lines = ask(prometheus.url, "--query", "twice_watts")
    assert lines[0][:2] == ["n2", "70000"]
    assert lines[1][:3] == ["rejected", "several_series", "1:"]


def test_a_target_that_is_gone_has_no_value(exporters):
    server, prometheus, _ = exporters
    text = server.answers.pop("/scaphandre")
    try:
        wait_until(lambda: ask_or_error(prometheus.url, "scaphandre").startswith("not_found"), 20,
                   "the readings to end", every=0.5)
    finally:
        server.answers["/scaphandre"] = text
    prometheus.wait_for("scaph_host_power_microwatts", 1)


def ask_or_error(url, exporter):
    try:
        return ask(url, "--exporter", exporter, check=False)
    except AssertionError:
        return ""


def test_a_wrong_query_is_explained_in_prometheus_own_words(exporters):
    _, prometheus, _ = exporters
    error = ask(prometheus.url, "--query", "watts{", check=False)
    assert error.startswith("invalid_argument: Prometheus refuses the query (bad_data)")
    assert "parse error" in error
    error = ask(prometheus.url, "--query", "sum by (node) (odd_watts) * on () group_left () twice_watts", check=False)
    assert error.startswith("invalid_argument: Prometheus refuses the query (execution)")


def test_what_is_not_prometheus_is_told_apart(exporters):
    server, prometheus, _ = exporters
    assert ask(prometheus.url + "/graph", "--exporter", "ipmi-exporter", check=False).startswith(("not_found", "parse"))
    server.answers["/r/api/v1/query"] = (302, {"Location": prometheus.url + "/api/v1/query"}, "")
    before = len(server.requests)
    assert ask(server.url + "/r", "--exporter", "ipmi-exporter", check=False).startswith("forbidden: HTTP 302: redirects")
    assert len(server.requests) >= before + 1
    server.answers["/h/api/v1/query"] = "<html>please sign in</html>"
    assert ask(server.url + "/h", "--exporter", "ipmi-exporter", check=False).startswith("parse: not JSON")
    assert ask("http://127.0.0.1:1", "--exporter", "ipmi-exporter", check=False).startswith("unavailable")
