"""kwatt's TensorFlow Serving predictor against a fake of that server (tf_serving_fake.py), over real sockets."""
import subprocess

import pytest

from lab.site import program
from tf_serving_fake import TfServingFake, watts


@pytest.fixture(scope="module")
def fake():
    running = TfServingFake()
    yield running
    running.stop()


def ask(url, *points, signature="konohana", timeout="5s"):
    done = subprocess.run([program("predictor_probe", "test"), "--tfserving", url, "--signature", signature, "--ranges",
                           "--allow", "127.0.0.1", "--timeout", timeout, *points],
                          capture_output=True, text=True, timeout=60)
    return [int(line) / 1000 for line in done.stdout.split()] if done.returncode == 0 else done.stderr.strip()


POINT = "used=1000,extra=1000,cpus=4,ambient=20,cpu1=60,cpu2=75"  # half, half, half and three quarters


def test_watts_of_a_batch_by_waos_order_and_scale(fake):
    got = ask(fake.url(), POINT, "used=0,cpus=4,ambient=10,cpu1=30,cpu2=90")
    assert got == pytest.approx([watts([0.5, 0.5, 0.5, 0.75]), watts([0, 0, 0, 1])])
    path, headers, body = fake.requests[-1]
    assert path == "/v1/models/konohana:predict"
    assert "Authorization" not in headers and "Cookie" not in headers
    assert body["signature_name"] == "konohana"


@pytest.mark.parametrize("model, signature, want", [
    ("other", "", 'not_found: {name}: HTTP 404: there is no model "other"'),
    ("konohana", "other", "invalid_argument: {name} signature other: HTTP 400: it does not take these inputs"),
    ("nan", "", "out_of_range: {name}: outputs[0] is nan"),
    ("slow", "", "timeout: {name}: "),
    ("huge", "", "protocol: {name}: "),
])
def test_what_is_wrong_is_said(fake, model, signature, want):
    got = ask(fake.url(model), POINT, signature=signature, timeout="1s")
    assert isinstance(got, str) and got.startswith(want.format(name="TFServing " + fake.url(model))), got


def test_a_server_that_is_gone(fake):
    assert ask("http://127.0.0.1:1/v1/models/konohana", POINT).startswith("unavailable: TFServing http://127.0.0.1:1/")
