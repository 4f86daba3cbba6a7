"""Small stories whose end is known: each is played once undisturbed, and then under faults; the ends must be equal.

prepare() happens before any fault; act() begins when the faults are armed; done() tells the undisturbed run
that it has arrived, every other run is compared with what that one has reached.
"""
from bed import objects
from chaos.yard import BY_HAND, RESTORE_AFTER

PAIR = ("m1", "m2")
ALL = ("m1", "m2", "m3", "m4")
# What the lab's machines draw: what the percentages of capping are of.
LAB_MODEL = {"idleMilliwatts": 122_000, "maxMilliwatts": 406_000, "bootSeconds": 2, "bootJoules": 1,
             "shutdownSeconds": 1}
IDLE = {"powerOff": {"idleFor": "1s"}}
STILL = {"powerOff": {"enabled": False}, "powerOn": {"enabled": False}}
DVFS = {**STILL, "dvfs": {"enabled": True, "window": "2s", "lowUtilizationPercent": 30, "highUtilizationPercent": 60}}
CAPPING = {**STILL, "capping": {"enabled": True, "method": "RAPL", "window": "2s", "abovePercentOfMax": 90,
                                "capPercentOfMax": 80, "releasePercentOfMax": 70}}
MIGRATE = {**IDLE, "migration": {"enabled": True, "strategy": "FewestPods", "maxNodes": 1, "minSavingScore": 1,
                                 "drainTimeout": "5m", "evictionRetry": "1s"}}


class Scenario:
    reads_only = False    # nothing but our own status may change from act() on
    blur = ()             # see state.capture()
    by_hand = None        # a machine that has a frequency limit set by hand

    @property
    def name(self):
        return type(self).__name__.lower()

    def prepare(self, yard):
        if self.by_hand:
            yard.api.annotate("Node", self.by_hand, {BY_HAND: "2000"})
            yard.wait(lambda: yard.power(self.by_hand).get("report", {}).get("maxMHz") == 2000, "the limit by hand")

    def act(self, yard):
        raise NotImplementedError

    def done(self, yard):
        raise NotImplementedError


class PowerOff(Scenario):
    """Of four idle machines those two go off that minAwake, the zones and the controller's own node leave, one at a
    time."""

    def act(self, yard):
        yard.apply_policy(ALL, {"powerOff": {"idleFor": "1s", "minAwake": 2, "minAwakePerZone": 1},
                                "disruption": {"budgets": [{"nodes": "1"}]}})

    def done(self, yard):
        return yard.is_off("m1") and yard.is_off("m3") and yard.idle()


class Drain(Scenario):
    """The machine with fewer pods is emptied, one pod at a time for the disruption budget, and switched off."""

    def prepare(self, yard):
        yard.deploy_on("small", 2, "m1", PAIR, cpu="1")
        yard.deploy_on("big", 3, "m2", PAIR, cpu="1")
        yard.api.create(objects.disruption_budget("small", {"app": "small"}, min_available=1,
                                                  namespace=yard.NAMESPACE))

    def act(self, yard):
        yard.apply_policy(PAIR, MIGRATE)

    def done(self, yard):
        return yard.is_off("m1") and yard.idle() and len(yard.where("small")) == 2


class Wake(Scenario):
    """Pods that do not fit wake a machine that is off, and run there."""

    def prepare(self, yard):
        yard.deploy_on("base", 1, "m2", PAIR, cpu="1")
        yard.apply_policy(PAIR, IDLE)
        yard.wait(lambda: yard.is_off("m1") and yard.idle(), "m1 to be off")

    def act(self, yard):
        yard.deploy("web", 2, PAIR, cpu="6")

    def done(self, yard):
        return len(yard.where("web")) == 2 and yard.idle() and yard.power("m1").get("powerState") == "On"


class Dvfs(Scenario):
    """An idle machine becomes slow, a busy one fast; one that has a limit by hand is left alone."""
    by_hand = "m3"

    def prepare(self, yard):
        super().prepare(yard)
        yard.load(m1=5, m2=90, m3=5)

    def act(self, yard):
        yard.apply_policy(("m1", "m2", "m3"), DVFS)

    def done(self, yard):
        labels = [yard.api.get("Node", m)["metadata"]["labels"].get("kwatt.dev/frequency") for m in ("m1", "m2")]
        return yard.site.governor("m1") == "powersave" and yard.site.governor("m2") == "performance" and \
            labels == ["low", "normal"] and yard.idle()


class Capping(Scenario):
    """A machine above the threshold is capped, another is not."""

    def prepare(self, yard):
        yard.models(LAB_MODEL)
        yard.load(m1=100, m2=5)

    def act(self, yard):
        yard.apply_policy(PAIR, CAPPING)

    def done(self, yard):
        return yard.idle() and yard.api.get("Node", "m1")["metadata"]["labels"].get("kwatt.dev/capped") == "true"


class Limit(Capping):
    """The same by the limit of the machine's BMC."""

    def prepare(self, yard):
        super().prepare(yard)
        yard.bmcs("redfish", "m1")
        yard.wait(lambda: yard.power("m1").get("bmc", {}).get("powerLimit"), "the BMC to tell its limit")

    def act(self, yard):
        yard.apply_policy(PAIR, {**CAPPING, "capping": {**CAPPING["capping"], "method": "BMC"}})

    def done(self, yard):
        return yard.idle() and yard.site.room.machine("m1")["capWatts"] is not None


class Budget(Scenario):
    """Three machines share fewer watts than they could draw; the draw that is possible never exceeds them again."""
    WATTS = 1000
    blur = ("watts", "decisions")

    def prepare(self, yard):
        yard.models(LAB_MODEL)
        yard.load(m1=100, m2=50, m3=5)

    def act(self, yard):
        yard.apply_policy(("m1", "m2", "m3"), {**CAPPING, "capping": {**CAPPING["capping"], "budgetWatts": self.WATTS}})

    def done(self, yard):
        caps = [yard.api.get("Node", m)["metadata"].get("annotations", {}).get("kwatt.dev/power-cap-watts")
                for m in ("m1", "m2", "m3")]
        return yard.idle() and all(caps) and sum(map(int, caps)) <= self.WATTS


class Held(Scenario):
    """Ends of a policy that holds something: m1 is off, m2 slow; m3 has a limit by hand and is not the policy's."""
    by_hand = "m3"

    def prepare(self, yard):
        super().prepare(yard)
        # Of two idle machines either may go: the other may be busy with its governor at that moment.
        yard.deploy_on("base", 1, "m2", PAIR, cpu="1")
        yard.apply_policy(PAIR, {**IDLE, "dvfs": DVFS["dvfs"]})
        yard.wait(lambda: yard.is_off("m1") and yard.site.governor("m2") == "powersave" and yard.idle(),
                  "m1 to be off and m2 slow")

    def given_back(self, yard):
        return yard.power("m1").get("powerState") == "On" and yard.idle() and \
            yard.site.governor("m2") != "powersave"


class Deletion(Held):
    """The policy is deleted: everything is given back, then it is gone."""

    def act(self, yard):
        yard.api.delete("EnergyPolicy", yard.POLICY)

    def done(self, yard):
        return not yard.api.find("EnergyPolicy", yard.POLICY) and self.given_back(yard)


class Release(Held):
    """From Enforce to Recommend: everything is given back."""

    def act(self, yard):
        yard.change_policy({"mode": "Recommend"})

    def done(self, yard):
        return yard.policy_seen() and self.given_back(yard)


class Abort(Scenario):
    """The policy is deleted in the middle of a drain: the node is in service again, all pods run."""
    blur = ("cycles", "places")

    def prepare(self, yard):
        SCENARIOS["drain"].prepare(yard)

    def act(self, yard):
        yard.apply_policy(PAIR, MIGRATE)
        yard.wait(lambda: yard.power("m1").get("operation", {}).get("kind") == "PowerOff" or yard.is_off("m1"),
                  "the drain to begin")
        yard.api.delete("EnergyPolicy", yard.POLICY)

    def done(self, yard):
        return not yard.api.find("EnergyPolicy", yard.POLICY) and yard.idle() and \
            yard.power("m1").get("powerState") == "On" and len(yard.where("small")) == 2


class Rush(Scenario):
    """Pods come while a machine is on its way off: it is kept, or woken again, and they run."""
    blur = ("cycles", "places", "decisions")

    def prepare(self, yard):
        yard.deploy_on("base", 1, "m2", PAIR, cpu="1")

    def act(self, yard):
        yard.apply_policy(PAIR, IDLE)
        yard.wait(lambda: yard.power("m1").get("operation", {}).get("kind") == "PowerOff" or yard.is_off("m1"),
                  "m1 to be on its way off")
        yard.deploy("web", 2, PAIR, cpu="6")

    def done(self, yard):
        return len(yard.where("web")) == 2 and yard.idle() and yard.power("m1").get("powerState") == "On"


class Suspend(Scenario):
    """A suspended policy keeps everything as it is, also while pods wait, and says so."""
    reads_only = True

    def prepare(self, yard):
        yard.deploy_on("base", 1, "m2", PAIR, cpu="1")
        yard.apply_policy(PAIR, IDLE)
        yard.wait(lambda: yard.is_off("m1") and yard.idle(), "m1 to be off")
        yard.change_policy({"suspend": True})
        yard.wait(yard.policy_seen, "the suspension to be noticed")

    def act(self, yard):
        yard.deploy("web", 2, PAIR, cpu="6")

    def done(self, yard):
        enforcing = next((c for c in yard.policy_status().get("conditions", []) if c["type"] == "Enforcing"), {})
        return len(yard.where("web")) == 1 and "m1" in enforcing.get("message", "")


class Recommend(Scenario):
    """A policy that only recommends says what it would do, and does nothing."""
    reads_only = True

    def prepare(self, yard):
        yard.load(m2=5)

    def act(self, yard):
        yard.apply_policy(PAIR, {**IDLE, "mode": "Recommend", "dvfs": DVFS["dvfs"]})

    def done(self, yard):
        return bool(yard.policy_status().get("powerOff")) and yard.policy_seen()


class Loss(Scenario):
    """The controller is away for longer than the agents wait: they restore what was; when it is back, so are its
    settings."""

    def act(self, yard):
        yard.load(m1=5)
        yard.apply_policy(("m1",), DVFS)
        yard.wait(lambda: yard.site.governor("m1") == "powersave" and yard.idle(), "powersave")
        yard.stop_controller(kill=True)
        yard.wait(lambda: yard.site.governor("m1") != "powersave", "the agent to restore the governor",
                  RESTORE_AFTER + 30)
        yard.start_controller()

    def done(self, yard):
        return yard.site.governor("m1") == "powersave" and yard.idle() and yard.leading()


SCENARIOS = {one.name: one for one in (PowerOff(), Drain(), Wake(), Dvfs(), Capping(), Limit(), Budget(),
                                       Deletion(), Release(), Abort(), Rush(), Suspend(), Recommend(), Loss())}
