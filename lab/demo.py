"""./dev demo: a real control plane, eight simulated machines, the real kwatt, and a table to watch.

Starts everything on loopback, applies examples/demo/, drives a short story (load comes, load goes) and
prints what happens. Ctrl-C cleans up. --story plays it once and ends, for tests.
"""
from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from lab.site import ROOT, Site, objects

CONSOLIDATED, TUNED, CAPPED = "consolidated", "tuned", "capped"
MACHINES = 5  # that are consolidated
STORY_SECONDS = 300
MODEL = {"idleMilliwatts": 122_000, "maxMilliwatts": 406_000, "bootSeconds": 4, "bootJoules": 100,
         "shutdownSeconds": 2}


class Story:
    """What happened, each thing once, with the second at which it was seen."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.lines: list[str] = []

    def tell(self, text: str) -> None:
        if text not in self.lines:
            self.lines.append(text)
            print(f"\033[32m[{time.monotonic() - self.started:5.1f} s] {text}\033[0m", flush=True)


def build_site(site: Site) -> None:
    """Three groups of machines, one per policy of the demo."""
    groups = [(CONSOLIDATED, "room-a", MACHINES, "lab"), (TUNED, "room-b", 2, "redfish"), (CAPPED, "room-b", 1, "redfish")]
    machines = []
    for group, zone, count, bmc in groups:
        for number in range(1, count + 1):
            machines.append({"name": f"{group}-{number}", "bmc": bmc, "cpu": 8, "zone": zone, "model": MODEL,
                             "labels": {"kwatt.dev/demo": group}, "boot_seconds": 4, "shutdown_seconds": 2})
    site.add_machines(*machines)


def deploy(site: Site, name: str, replicas: int, cpu: str, group: str, used: str) -> None:
    site.bed.kubectl("apply", "-f", "-", input=objects.deployment(
        name, replicas=replicas, cpu=cpu, node_selector={"kwatt.dev/demo": group},
        pod_annotations={"lab.kwatt.dev/cpu": used}))


def table(site: Site, names: list[str]) -> str:
    pods: dict[str, int] = {}
    for pod in site.bed.api.list("Pod"):
        if objects.pod_is_running(pod):
            pods[pod["spec"].get("nodeName", "")] = pods.get(pod["spec"].get("nodeName", ""), 0) + 1
    rows = [f"{'MACHINE':<16}{'STATE':<13}{'PODS':>4}{'WATTS':>8}  {'GOVERNOR':<13}{'CAP':>5}  DECISION"]
    for name in names:
        machine, power = site.room.machine(name), site.machine_power(name)
        decision, operation = power.get("decision", {}), power.get("operation", {})
        ours = power.get("bmc", {}).get("effectiveCapWatts", 0)
        cap = power.get("report", {}).get("effectiveCapWatts", 0) or ours
        reason = decision.get("reason", "-")
        step = f" ({operation['kind']}: {operation['step']})" if operation.get("id") else ""
        governor = machine["policies"][0]["governor"] if machine["policies"] else "-"
        rows.append(f"{name:<16}{power.get('powerState', 'Unknown'):<13}{pods.get(name, 0):>4}"
                    f"{machine['watts']:>8.0f}  {governor:<13}{cap or '-':>5}  {reason}{step}")
    energy = site.room.call(lambda room: room.energy())
    rows.append(f"{'':<29}{'':>4}{energy['watts']:>8.0f}  {energy['on']} on, {energy['off']} off")
    return "\n".join(rows)


def look(site: Site, story: Story, names: list[str], seen: dict[str, str]) -> None:
    """Turns what can be seen on the machines into lines of the story."""
    for name in names:
        machine, power = site.room.machine(name), site.machine_power(name)
        report = power.get("report", {})
        governor = machine["policies"][0]["governor"] if machine["policies"] else ""
        state = power.get("powerState", "")
        before = seen.get(name + "/state", "")
        if state == "Off" and before != "Off":
            moved = [e for e in site.commands(name) if e["command"] == "GracefulShutdown"]
            story.tell(f"{name} is drained and switched off ({power['decision'].get('reason')}, "
                       f"{len(moved)} graceful shutdown)")
        if state == "On" and before in ("Off", "PoweringOn") and seen.get(name + "/off"):
            story.tell(f"{name} is awake again ({power['decision'].get('reason')})")
        if state == "Off":
            seen[name + "/off"] = "yes"
        old = seen.get(name + "/governor", governor)
        if governor and old and governor != old:
            story.tell(f"{name}: governor {old} -> {governor} in its sysfs")
        # By the BMC where it takes a limit, else by the agent; told once it is in force, not when it was asked for.
        bmc = power.get("bmc", {})
        cap = bmc.get("requestedCapWatts", 0) or report.get("requestedCapWatts", 0)
        in_force = bmc.get("effectiveCapWatts", 0) == cap if bmc.get("requestedCapWatts") else report.get("converged")
        capped = cap > 0 and (in_force or seen.get(name + "/cap") == "yes")
        if capped and seen.get(name + "/cap") != "yes":
            story.tell(f"{name}: capped at {cap} W")
        if not capped and seen.get(name + "/cap") == "yes":
            story.tell(f"{name}: cap released")
        seen[name + "/state"], seen[name + "/cap"] = state, "yes" if capped else "no"
        if governor:
            seen[name + "/governor"] = governor


class Script:
    """Load comes and goes: each scene starts when the one before it has shown its effect."""

    def __init__(self, site: Site, story: Story) -> None:
        self.site, self.story, self.scene = site, story, 0

    def happened(self, *words: str) -> bool:
        return any(all(word in line for word in words) for line in self.story.lines)

    def step(self) -> bool:
        """True when the story is over."""
        if self.scene == 0 and self.happened(CONSOLIDATED, "switched off"):
            # One for each machine of the group, and no machine has room for two: what is off must wake.
            print(f"    ... {MACHINES} large pods arrive", flush=True)
            deploy(self.site, "batch", MACHINES, "5", CONSOLIDATED, "4000")
            self.scene = 1
        elif self.scene == 1 and self.happened(CONSOLIDATED, "awake again"):
            print(f"    ... {CAPPED}-1 is driven to its limit", flush=True)
            self.site.room.set_load(f"{CAPPED}-1", 100)
            self.scene = 2
        elif self.scene == 2 and self.happened(CAPPED, "capped at"):
            print("    ... and left alone again", flush=True)
            self.site.room.set_load(f"{CAPPED}-1", 5)
            self.scene = 3
        elif self.scene == 3 and self.happened(CAPPED, "cap released"):
            self.site.bed.kubectl("delete", "deployment", "batch", "--wait=false")
            self.scene = 4
        return self.scene == 4 and self.happened("governor")


def run(arguments: argparse.Namespace) -> int:
    story = Story()
    print("==> starting a real control plane and eight simulated machines", flush=True)
    with Site(Path(arguments.dir) if arguments.dir else None) as site:
        build_site(site)
        names = sorted(machine["metadata"]["name"] for machine in site.bed.api.list("Node"))
        site.start_controller()
        deploy(site, "web", 3, "500m", CONSOLIDATED, "300")
        site.bed.kubectl("apply", "-f", ROOT / "examples" / "demo")
        kubectl = site.bed._programs["kubectl"]  # noqa: SLF001 - printed for the reader
        print(f"==> running; in another terminal:\n    export KUBECONFIG={site.bed.kubeconfig}\n"
              f"    export PATH={Path(kubectl).parent}:$PATH\n"
              f"    kubectl get energypolicies,nodepowers -w\n", flush=True)
        script, seen, shown, over = Script(site, story), {}, 0.0, False
        seconds = arguments.seconds or (STORY_SECONDS if arguments.story else None)
        deadline = time.monotonic() + seconds if seconds else None
        while True:
            site.controller.check()
            look(site, story, names, seen)
            if not over and script.step():
                over = True
                print("\n==> the story is told: kubectl get enp,npw", flush=True)
                print(site.bed.kubectl("get", "enp,npw"), flush=True)
                print(site.bed.kubectl("get", "enp", CONSOLIDATED, "-o", "yaml"), flush=True)
                if arguments.story:
                    return 0
                print("==> everything goes on; Ctrl-C ends and cleans up", flush=True)
            if time.monotonic() - shown >= arguments.every:
                shown = time.monotonic()
                print(table(site, names) + "\n", flush=True)
            if deadline and time.monotonic() > deadline:
                print("the story was not told in time", file=sys.stderr)
                return 1
            time.sleep(0.3)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--story", action="store_true", help="end when the story has been told")
    parser.add_argument("--seconds", type=float, help="give up (exit status 1) after so long "
                        f"(without --story: never; with it: {STORY_SECONDS})")
    parser.add_argument("--every", type=float, default=3, help="seconds between tables (%(default)s)")
    parser.add_argument("--dir", help="keep logs and kubeconfig here")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(arguments)
    except KeyboardInterrupt:
        print("\n==> cleaned up", flush=True)
        return 0


if __name__ == "__main__":
    sys.exit(main())
