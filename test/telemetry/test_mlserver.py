"""kwatt's KServe V2 predictor against the real mlserver, with models trained here."""
import subprocess

import pytest

import mlserver_peer as mlserver
from lab.site import program

pytestmark = pytest.mark.xdist_group("mlserver")

skipped = mlserver.reason_to_skip()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if skipped:
        pytest.skip(skipped)
    running = mlserver.MlServer(tmp_path_factory.mktemp("mlserver"))
    yield running
    running.stop()


def ask(url, *points, allow="127.0.0.1"):
    """Watts, or the error's text."""
    done = subprocess.run([program("predictor_probe", "test"), "--mlserver", url, "--allow", allow, "--timeout", "20s",
                           *points], capture_output=True, text=True, timeout=60)
    return [int(line) / 1000 for line in done.stdout.split()] if done.returncode == 0 else done.stderr.strip()


def test_the_inputs_go_in_the_order_of_the_models_metadata(server):
    got = ask(server.url("power"), "used=1000,extra=500,cpus=4,ambient=22,pressure=0.25",
              "used=0,cpus=64,ambient=35,pressure=0.5")
    assert got == pytest.approx([mlserver.watts(0.375, 22, 4, 0.25), mlserver.watts(0, 35, 64, 0.5)], abs=0.002)


def test_a_batch_of_hundreds_is_one_question(server):
    points = [f"used={i * 10},cpus=8,ambient={20 + i % 10},pressure=0.1" for i in range(500)]
    got = ask(server.url("power"), *points)
    assert got == pytest.approx([mlserver.watts(i * 10 / 8000, 20 + i % 10, 8, 0.1) for i in range(500)], abs=0.002)


def test_a_model_without_a_description_is_asked_as_wao_estimator_asks(server):
    got = ask(server.url("wao"), "used=2000,cpus=4,ambient=20,pressure=0.5")
    assert got == pytest.approx([50 + 100 * 0.5 + 2 * 20 + 10 * 0.5], abs=0.01)


@pytest.mark.parametrize("model, version, want", [
    ("nothing", "v0.1.0", 'not_found: {name}: HTTP 404: there is no model "nothing"'),
    ("power", "v9", 'not_found: {name}: HTTP 404: there is no model "power"'),
    ("broken", "v0.1.0", '{name}: metadata: input 4 is "FanSpeed" of type "FP64"'),
    ("mistaken", "v0.1.0", "unavailable: {name}: HTTP 500: the model or its server failed (answer: Internal Server Error)"),
    ("negative", "v0.1.0", "out_of_range: {name}: outputs[0].data[0] is -5"),
])
def test_what_is_wrong_is_said_with_endpoint_and_model(server, model, version, want):
    got = ask(server.url(model, version), "used=500,cpus=4,ambient=22,pressure=0.2")
    name = "MLServer " + server.url(model, version).removesuffix("/infer")
    assert isinstance(got, str) and want.format(name=name) in got, got


def test_an_input_that_is_not_known_is_named(server):
    assert ask(server.url("power"), "used=500,cpus=4,ambient=22").endswith(
        ": the static pressure difference is not known")


def test_another_host_is_not_asked(server):
    assert ask(server.url("power"), "used=500", allow="10.0.0.0/8").startswith("forbidden: MLServer http://127.0.0.1")
