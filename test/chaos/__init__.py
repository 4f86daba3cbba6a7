"""Crash and fault tolerance, proven from outside: ./dev chaos. See docs/explanation/chaos.md."""
