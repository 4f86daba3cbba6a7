"""A pod lands on the node with the least increase in watts: a real kube-scheduler asks the real kwatt-controller.

    python3 -m lab.place
"""
from __future__ import annotations

import re
import sys

from lab.site import Site

from bed import objects
from bed.process import PortReservation, wait_until

NODES = {"flat": {"idleMilliwatts": 100_000, "maxMilliwatts": 140_000},
         "steep": {"idleMilliwatts": 100_000, "maxMilliwatts": 400_000}}


def main() -> int:
    port = PortReservation()
    extender = {"urlPrefix": f"http://127.0.0.1:{port.port}/scheduler", "filterVerb": "filter",
                "prioritizeVerb": "prioritize", "weight": 100_000, "nodeCacheCapable": True, "ignorable": True}
    config = {"percentageOfNodesToScore": 100, "extenders": [extender]}
    with Site(agents=False, redfish=False, scheduler_config=config) as site:
        site.add_machines(*({"name": name, "bmc": None, "model": model} for name, model in NODES.items()))
        controller = site.start_controller("--extender-address", f"127.0.0.1:{port.port}")
        wait_until(lambda: "caches filled" in controller.log_path.read_text(), 30, "the controller's caches")
        print("NODE    CPUS   IDLE    FULL")
        for name, model in NODES.items():
            print(f"{name:<7} {8:>4}   {model['idleMilliwatts'] // 1000} W   {model['maxMilliwatts'] // 1000} W")
        site.bed.create_namespace("shop")
        site.bed.api.create(objects.pod("web-1", "shop", cpu="1"))
        node = wait_until(lambda: site.bed.api.get("Pod", "web-1", "shop")["spec"].get("nodeName"), 30, "the binding")
        print(f"\nshop/web-1 is on {node}")
        for name, score, why in scores(controller.log_path.read_text(), "shop/web-1"):
            print(f"  {name + ':':<6} score {score:<3} {why}")
    port.release()
    return 0 if node == "flat" else 1


def scores(log: str, pod: str) -> list[tuple[str, str, str]]:
    """(node, score, what of its total comes from where), best first, from the controller's debug log."""
    lines = [line for line in log.splitlines() if "msg=scored" in line and f"pod={pod} " in line]
    return [match.groups() for line in lines  # type: ignore[misc]
            if (match := re.search(r' node=(\S+) score=(\d+) .*why="?([^"]*)"?', line))]


if __name__ == "__main__":
    sys.exit(main())
