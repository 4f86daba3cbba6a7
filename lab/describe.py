"""Machines and faults as JSON documents."""

from __future__ import annotations

import dataclasses
from typing import Any

from .faults import Faults
from .machine import Machine, timestamp
from .spec import from_json, snake


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


def faults_document(faults: Faults) -> dict[str, Any]:
    return {camel(f.name): getattr(faults, f.name) for f in dataclasses.fields(faults)}


def merged_faults(current: Faults, change: dict[str, Any]) -> Faults:
    """The faults with some changed; an unknown name or value is a ValueError."""
    kept = {key: value for key, value in faults_document(current).items() if snake(key) not in map(snake, change)}
    return from_json(Faults, {**kept, **change}, "faults")


def load_document(machine: Machine) -> dict[str, Any]:
    return {"percent": machine.base_percent, "podMillicores": machine.pod_millicores,
            "demandPercent": round(machine.demand * 100, 3)}


def machine_document(machine: Machine) -> dict[str, Any]:
    """The truth about a machine, whatever faults are injected; what needs a running system is empty when it is not."""
    spec, solution = machine.spec, machine.solution
    on = machine.state == "On"
    policies = []
    for settings, khz in zip(machine.settings.policies, solution.khz):
        low, high = machine.limits_khz(settings)
        policies.append({"governor": settings.governor, "minMHz": low // 1000, "maxMHz": high // 1000,
                         "epp": settings.epp if spec.driver_traits.has_epp else "", "currentMHz": khz // 1000})
    packages = [{"limitWatts": settings.long_term_uw / 1e6, "enabled": settings.enabled, "watts": round(watts, 3)}
                for settings, watts in zip(machine.settings.packages, solution.package_watts)]
    return {
        "name": spec.name, "state": machine.state, "since": timestamp(machine.since), "bootId": machine.boot_id,
        "boots": machine.boots, "watts": round(machine.watts, 3), "joules": round(machine.total_joules, 3),
        "joulesByState": {state: round(joules, 3) for state, joules in machine.joules.items()},
        "capWatts": machine.wall_cap,
        "capRange": {"minWatts": machine.cap_range[0], "maxWatts": machine.cap_range[1]},
        "load": load_document(machine), "cpus": spec.cpus, "driver": spec.driver,
        "busyPercent": round(sum(solution.busy) / len(solution.busy) * 100, 3) if on else 0.0,
        "throttled": on and solution.throttled,
        "policies": policies if on else [], "packages": packages if on else [],
        "faults": faults_document(machine.faults),
    }
