"""The house has one direction: a folder includes only what cmake/layers.txt allows, Beast and
asio/ssl appear only in net/, and the pure folders never see a clock, a file or the network."""
import re
import subprocess
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
PURE = ("models", "placement", "planner", "simulator")
IMPURE = re.compile(
    r"system_clock::now|steady_clock::now|getenv|<fstream>|<filesystem>|random_device|boost/asio|\bSystemClock\b"
)
HEAVY = re.compile(r"^boost/(beast|asio/ssl)")


def layers(root):
    allowed = {}
    for line in (root / "cmake" / "layers.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            folder, _, deps = line.partition(":")
            allowed[folder.strip()] = set(deps.split())
    return allowed


def sources(root):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.cpp", "*.hpp"],
                            cwd=root, check=True, capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if (root / line).exists()]


def problems_in(path, text, allowed):
    folder = path.split("/")[0]
    if folder not in allowed:
        return []
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        if folder in PURE and not line.lstrip().startswith("//") and IMPURE.search(line):
            found.append(f"{where}: a pure folder must not do this: {line.strip()}")
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(2)
        if HEAVY.match(target) and folder != "net":
            found.append(f"{where}: only net/ may include {target}")
        first = target.split("/")[0]
        if match.group(1) == '"' and first in allowed and first != folder and first not in allowed[folder]:
            found.append(f"{where}: {folder}/ must not include {first}/ (cmake/layers.txt)")
    return found


def problems(root):
    root = Path(root)
    allowed = layers(root)
    found = []
    for path in sources(root):
        found += problems_in(path, (root / path).read_text(), allowed)
    return found
