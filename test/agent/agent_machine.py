"""What tests do with a machine on which the real kwatt-agent runs, whatever its /sys is made of."""
import itertools
import json
import shutil
import signal

from bed.process import Process, wait_until
from fake_ingest import FakeIngest
from lab.site import NAMESPACE, program

_numbers = itertools.count(1)


class AgentMachine:
    """A Node, its NodePower, and an agent that the test starts and stops. Who derives from it says where its files
    are (`folder`), makes the two objects, and then calls prepare()."""

    def __init__(self, site, prefix):
        self.site, self.bed = site, site.bed
        self.name = f"{prefix}-{next(_numbers)}"
        self.ingest = FakeIngest()
        self.folder = self.sys = self.proc = self.agent = None

    def prepare(self, folder, sys, proc):
        self.folder, self.sys, self.proc = folder, sys, proc
        token = self.bed.token_for("kwatt-agent", NAMESPACE, bound_node=self.name, seconds=3600)
        shutil.copy(self.bed.kubeconfig_for_token(token), folder / "agent.kubeconfig")
        (folder / "push.token").write_text("push-token-1\n")

    def command(self, *options):
        return [str(word) for word in (
            program("kwatt-agent"), "--node-name", self.name, "--kubeconfig", self.folder / "agent.kubeconfig",
            "--sysfs-root", self.sys, "--proc-root", self.proc, "--log-format", "logfmt", *options)]

    def start_agent(self, *options, push_interval="500ms"):
        self.agent = Process("agent", self.command(
            "--controller-url", self.ingest.url, "--controller-token-file", self.folder / "push.token",
            "--sample-interval", "250ms", "--push-interval", push_interval, *options), self.folder / "agent.log")
        self.agent.start()

    def terminate(self):
        """SIGTERM; the exit code. A sanitizer that found something makes it another than 0."""
        popen = self.agent._popen
        self.agent.signal(signal.SIGTERM)
        return popen.wait(timeout=10)

    def annotate(self, **annotations):
        """governor="powersave" sets kwatt.dev/governor, governor=None removes it; max_frequency_mhz likewise."""
        words = []
        for key, value in annotations.items():
            key = "kwatt.dev/" + key.replace("_", "-")
            words.append(f"{key}-" if value is None else f"{key}={value}")
        self.bed.kubectl("annotate", "--overwrite", "node", self.name, *words)

    def report(self):
        return self.site.machine_power(self.name).get("report", {})

    def wait(self, condition, what, seconds=15):
        def met():
            self.agent.check()
            return condition()
        try:
            return wait_until(met, seconds, what, every=0.05)
        except TimeoutError as error:
            raise AssertionError(f"{error}\nreport: {json.dumps(self.report(), indent=1)}\n"
                                 f"log:\n{self.agent.log_tail(25)}") from None

    def wait_report(self, what, seconds=15, **wanted):
        self.wait(lambda: all(self.report().get(k, 0 if isinstance(v, int) else "") == v
                              for k, v in wanted.items()), what, seconds)

    def clean_up(self):
        try:
            if self.agent and self.agent.running():
                assert self.terminate() == 0, self.agent.log_tail(40)
        finally:
            self.ingest.stop()
        assert not self.ingest.complaints, self.ingest.complaints
