"""Things that die in the middle."""

MIGRATE = {"migration": {"enabled": True, "strategy": "FewestPods", "maxNodes": 1, "minSavingScore": 1,
                         "drainTimeout": "60s", "evictionRetry": "1s"},
           "powerOff": {"idleFor": "1s"}}


def test_a_controller_killed_in_the_middle_of_a_drain_is_resumed_from_the_api_alone(case):
    first, second = case.add_machines(2, cpu=8)
    case.deploy_on("big", first, replicas=3, cpu="1")
    case.deploy_on("small", second, replicas=2, cpu="1")
    case.apply_policy(MIGRATE)
    case.wait(lambda: case.power(second).get("operation", {}).get("kind") == "PowerOff", 30, "the drain to begin")
    operation = case.power(second)["operation"]["id"]
    case.site.controller.stop(grace=0)
    case.stays(lambda: case.site.room.machine(second)["state"] == "On", 3, "nothing happens without a controller")
    assert case.power(second)["operation"]["id"] == operation
    case.site.controller.start()
    case.wait_off(second, seconds=60)
    case.wait_running("small", 2)
    ids = {entry["operationId"] for entry in case.site.commands(second)}
    assert ids == {operation}


def test_an_api_server_that_is_gone_for_a_while_stops_everything_and_nothing_is_lost(case):
    case.add_machines(2)
    case.apply_policy({"powerOff": {"idleFor": "8s"}})
    case.bed.kubectl("wait", "--for=condition=Ready", f"enp/{case.name}", "--timeout=30s")
    case.bed.stop_apiserver()
    try:
        commands = len(case.site.commands())
        case.stays(lambda: len(case.site.commands()) == commands, 12, "no command while the API server is gone")
    finally:
        case.bed.start_apiserver()
    case.wait(lambda: sum(case.power(m).get("powerState") == "Off" for m in case.machines) == 1, 60, "one off")


def test_an_api_server_that_is_restarted_is_watched_again(case):
    case.add_machines(2, cpu=4)
    case.apply_policy()
    case.wait(lambda: sum(case.power(m).get("powerState") == "Off" for m in case.machines) == 1, 40, "one off")
    case.bed.restart_apiserver(kill=True)
    case.wait(lambda: case.bed.kubectl("get", "--raw=/readyz", check=False).strip() == "ok", 30, "readyz")
    case.deploy("web", replicas=2, cpu="3")
    # The others must find the server again, too: the controller-manager makes the pods.
    case.wait_running("web", 2, seconds=150)


def test_sigterm_ends_the_controller_in_order_and_the_next_leads_at_once(case):
    case.add_machines(1)
    case.apply_policy({"mode": "Recommend"})
    case.bed.kubectl("wait", "--for=condition=Ready", f"enp/{case.name}", "--timeout=30s")
    case.site.controller.stop(grace=20)
    lease = case.bed.kubectl_json("get", "lease", "-n", "kwatt-system", "kwatt-controller")
    assert not lease["spec"].get("holderIdentity")
    case.site.controller.start()
    case.wait(lambda: case.bed.kubectl_json("get", "lease", "-n", "kwatt-system", "kwatt-controller")["spec"]
              .get("holderIdentity"), 5, "the next leader")
