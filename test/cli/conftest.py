"""Puts the test bed and the end-to-end cases where these tests can import them."""
import sys
from pathlib import Path

TESTS = str(Path(__file__).resolve().parents[1])
if TESTS not in sys.path:
    sys.path.insert(0, TESTS)
