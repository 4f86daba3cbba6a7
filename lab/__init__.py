"""A simulated machine room: see README.md. RoomThread runs one inside a test, `python3 -m lab` as a program."""

from .config import AgentOptions, KubeOptions, RedfishOptions, RoomConfig, parse
from .room import Room
from .spec import MachineSpec
from .thread import RoomThread

__all__ = ["AgentOptions", "KubeOptions", "MachineSpec", "RedfishOptions", "Room", "RoomConfig", "RoomThread", "parse"]
