"""Two machines behind a driver, the real controller, and the way off and back on: shared by the tests on the bed."""

from bed import objects
from bed.process import wait_until
from e2e.case import CHEAP_TO_BOOT, FAST


def off_and_on_again(site, name, bmc):
    """`bmc`: spec.bmc of the machine; the other one has no driver. Returns the machine's name."""
    bed = site.bed
    keep, machine = f"{name}-1", f"{name}-2"
    bed.create_namespace(name)
    for one in (keep, machine):
        site.add_machine(one, cpu=4, bmc=None, labels={"case": name}, model=CHEAP_TO_BOOT)
    bed.api.patch("NodePower", machine, {"spec": {"bmc": bmc}})

    def wait(condition, seconds, what):
        try:
            wait_until(condition, seconds, what, every=0.2)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{site.describe(machine)}\n{site.controller.log_tail(60)}") from None

    bed.kubectl("apply", "-f", "-", input={
        "apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": name},
        "spec": {**FAST, "nodeSelector": {"matchLabels": {"case": name}}}})
    wait(lambda: site.machine_power(machine).get("powerState") == "Off", 60, "the machine to be off")
    wait(lambda: site.room.machine(machine)["state"] == "Off", 5, "the room to say so")
    bed.kubectl("apply", "-f", "-", input=objects.deployment("web", replicas=2, namespace=name, cpu="3",
                                                             node_selector={"case": name}))
    wait(lambda: site.machine_power(machine).get("powerState") == "On", 60, "the machine to be awake")
    wait(lambda: all(objects.pod_is_running(pod) for pod in bed.api.list("Pod", name)), 30, "the pods to run")
    return machine
