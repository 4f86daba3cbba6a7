"""Real control planes for tests and the demo; see bed.py. Put the folder above (test/) on sys.path."""
from bed import objects
from bed.access import CommandError
from bed.bed import Bed, Timers
from bed.client import ApiError, Client, register_kind
from bed.process import wait_until

__all__ = ["ApiError", "Bed", "Client", "CommandError", "Timers", "objects", "register_kind", "wait_until"]
