"""The include-direction check itself, and the tree it guards."""
from pathlib import Path

import pytest

from include_direction import layers, problems, problems_in

ROOT = Path(__file__).resolve().parents[2]


def test_the_tree_keeps_its_directions():
    assert problems(ROOT) == []


@pytest.mark.parametrize("path, line, complaint", [
    ("api/x.cpp", '#include "kube/client.hpp"', "must not include kube/"),
    ("planner/x.hpp", '#include "net/client.hpp"', "must not include net/"),
    ("planner/x.cpp", "auto now = std::chrono::system_clock::now();", "pure folder"),
    ("kube/x.cpp", "#include <boost/beast/http.hpp>", "only net/"),
])
def test_a_wrong_include_is_named_with_file_and_line(path, line, complaint):
    found = problems_in(path, "#pragma once\n" + line + "\n", layers(ROOT))
    assert len(found) == 1
    assert found[0].startswith(f"{path}:2: ") and complaint in found[0]


def test_right_includes_pass():
    assert problems_in("kube/x.cpp", '#include "net/client.hpp"\n#include <vector>\n', layers(ROOT)) == []
