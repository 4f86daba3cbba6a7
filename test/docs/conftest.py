"""Puts the test bed and the page generator where the checks of the documentation can import them."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for folder in ("test", "tools"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))
