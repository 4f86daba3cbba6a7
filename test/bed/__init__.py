"""Starts and stops real control planes for tests and the demo; see bed.py."""
