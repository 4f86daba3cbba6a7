"""python3 -m lab: a room as a program. Prints one line when it is ready; SIGINT and SIGTERM end it."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

from .config import RoomConfig, load, parse
from .room import Room


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m lab", description=__doc__)
    parser.add_argument("--config", type=Path, help="room.json; the options below override it")
    parser.add_argument("--dir", help="directory for the machines' trees and endpoints.json")
    parser.add_argument("--control", metavar="HOST:PORT", help="control API (default 127.0.0.1:0, a free port)")
    parser.add_argument("--machines", metavar="N", type=int, help="that many machines, named node1, node2, …")
    parser.add_argument("--time-scale", type=float, help="divides boot and shutdown times (default 1)")
    parser.add_argument("--kubeconfig", help="drive kwok nodes and take load from pods")
    parser.add_argument("--server", help="instead of --kubeconfig: the API server's URL, with the next three")
    parser.add_argument("--ca", metavar="FILE")
    parser.add_argument("--cert", metavar="FILE")
    parser.add_argument("--key", metavar="FILE")
    parser.add_argument("--redfish-listen", metavar="HOST:PORT")
    parser.add_argument("--redfish-cert", metavar="FILE")
    parser.add_argument("--redfish-key", metavar="FILE")
    parser.add_argument("--redfish-auth", metavar="FILE", help="its first line is user:password")
    parser.add_argument("--agent-command", help="run per machine; {node} {sys} {proc} {dir} are filled in")
    parser.add_argument("--agent-restart", action="store_true", default=None, help="restart an agent that exits")
    return parser.parse_args()


def configuration(args: argparse.Namespace) -> RoomConfig:
    data: dict[str, Any] = load(args.config) if args.config else {}

    def override(section: dict[str, Any], **values: Any) -> dict[str, Any]:
        return {**section, **{key: value for key, value in values.items() if value is not None}}

    data = override(data, dir=args.dir, control=args.control, timeScale=args.time_scale)
    if args.machines is not None:
        data["machines"] = [{"name": "node{i}", "count": args.machines}]
    for name, section in (
        ("kube", override(data.get("kube") or {}, kubeconfig=args.kubeconfig, server=args.server, ca=args.ca,
                          cert=args.cert, key=args.key)),
        ("redfish", override(data.get("redfish") or {}, listen=args.redfish_listen, cert=args.redfish_cert,
                             key=args.redfish_key, authFile=args.redfish_auth)),
        ("agent", override(data.get("agent") or {}, command=args.agent_command, restart=args.agent_restart)),
    ):
        if section:
            data[name] = section
    return parse(data)


async def run(config: RoomConfig) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    room = Room(config)

    def ready() -> None:
        print(f"lab ready machines={len(room.machines)} control={room.control_url} redfish={room.redfish_url or '-'} "
              f"dir={room.dir}", flush=True)

    await room.serve(ready, stopped)


def main() -> int:
    try:
        config = configuration(options())
    except (OSError, ValueError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    try:
        asyncio.run(run(config))
    except (OSError, ValueError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
