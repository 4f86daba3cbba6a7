"""The documentation is true: links lead somewhere, pages made from other files are up to date, every word of the
API is explained, and the commands shown do what they say."""
import re
import subprocess

import pytest

import gen_reference
from documents import DIRECTIVE, ROOT, anchors, blocks, links, markdown_files, reasons, sources

REFERENCE = ROOT / "docs" / "reference"


def relative(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", markdown_files(), ids=relative)
def test_links_lead_somewhere(path):
    wrong = []
    for line, target in links(path):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        name, _, fragment = target.partition("#")
        aim = (path.parent / name).resolve() if name else path
        if not aim.exists():
            wrong.append(f"{relative(path)}:{line}: {target} does not exist")
        elif fragment and aim.suffix == ".md" and fragment not in anchors(aim):
            wrong.append(f"{relative(path)}:{line}: {target}: no such heading")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", markdown_files(), ids=relative)
def test_directives_stand_before_a_block_of_commands(path):
    directives = sum(bool(DIRECTIVE.match(line)) for line in path.read_text().splitlines())
    assert directives == sum(bool(block.directive) for block in blocks(path))


@pytest.mark.parametrize("name", [*gen_reference.KINDS.values(), *gen_reference.PROGRAMS.values(),
                                  gen_reference.PLUGIN_PAGE])
def test_generated_pages_are_up_to_date(name):
    made, missing = gen_reference.pages()
    if name not in made:
        pytest.skip(next(line for line in missing if line.startswith(name)))
    difference = gen_reference.difference(name, made[name])
    assert not difference, f"run python3 tools/gen_reference.py\n{difference}"


def first_cells(path):
    """The `word` in the first cell of every table row, in order."""
    return re.findall(r"^\| `([^`]+)`", path.read_text(), re.M)


def test_every_reason_is_explained_once():
    assert sorted(first_cells(REFERENCE / "reasons.md")) == sorted(reasons())


def test_reasons_called_reserved_are_those_that_nothing_produces():
    text = (REFERENCE / "reasons.md").read_text()
    reserved = set(re.findall(r"^\| `(\w+)`", text[text.index("## Reserved"):], re.M))
    # Plugins of placement/ and the plots of simulator/ have names of their own, which are no reasons.
    code = "\n".join(path.read_text() for path in sources() if path.suffix == ".cpp"
                     and path.relative_to(ROOT).parts[0] not in ("placement", "simulator"))
    # Conditions name some of them as plain words.
    used = set(re.findall(r"\bReason::(\w+)", code)) | set(re.findall(r'"([A-Z]\w+)"', code))
    assert reserved == set(reasons()) - used


def test_every_name_of_ours_on_a_node_or_pod_is_explained():
    page = (REFERENCE / "annotations.md").read_text()
    # kwatt.dev/controller is the reportingController of events, kwatt.dev/v1alpha1 the API version;
    # kwatt.dev/capacity-buffer and kwatt.dev/gpu-milli are only on objects that planner and simulator imagine.
    known = {"kwatt.dev/v1alpha1", "kwatt.dev/controller", "kwatt.dev/capacity-buffer", "kwatt.dev/gpu-milli"}
    used = {}
    for path in sources():
        for name in re.findall(r'"((?:[a-z]+\.)?kwatt\.dev/[a-z0-9-]+)"', path.read_text()):
            used.setdefault(name, relative(path))
    unexplained = {name: where for name, where in used.items() if name not in known and f"`{name}" not in page}
    assert used and not unexplained


def test_every_metric_is_explained_and_exists():
    pattern = re.compile(r'"((?:kwatt|workqueue|controller_runtime|leader_election|rest_client)_[a-z_]+)"')
    used = {name for path in sources() if path.suffix == ".cpp" for name in pattern.findall(path.read_text())}
    labels = {"kwatt_zone"}  # of series that others write
    assert sorted(first_cells(REFERENCE / "metrics.md")) == sorted(used - labels)


def test_the_readme_names_only_commands_that_dev_has():
    help_text = subprocess.run(["./dev"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=20).stdout
    offered = set(re.findall(r"^  (\w+)", help_text, re.M))
    for path in markdown_files():
        for command in re.findall(r"\./dev (\w+)", path.read_text()):
            assert command in offered, f"{relative(path)}: ./dev {command}"
    assert {"demo", "test"} <= set(re.findall(r"\./dev (\w+)", (ROOT / "README.md").read_text()))


def test_the_dependency_list_names_every_debian_package():
    packages = {line for line in (ROOT / "cmake" / "debian-packages.txt").read_text().split("\n")
                if line and not line.startswith("#")}
    page = (ROOT / "docs" / "dependencies.md").read_text()
    assert not [package for package in sorted(packages) if f"`{package}`" not in page]


def test_nothing_names_a_place_on_somebodys_machine():
    home = re.compile(r"/(?:root|home/\w+|work|Users)/")
    wrong = [f"{relative(path)}:{number}" for path in markdown_files()
             for number, line in enumerate(path.read_text().splitlines(), 1) if home.search(line)]
    assert not wrong
