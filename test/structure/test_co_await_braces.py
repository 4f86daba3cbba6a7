"""GCC 12 copies a braced temporary of an aggregate bit by bit when it stands inside a co_await expression.

An aggregate that holds a std::string then frees memory that is not its own. Types with constructors are
copied right, so a type may be named with braces there only when it is listed here as such."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WITH_CONSTRUCTORS = {"Duration", "seconds", "minutes", "hours", "milliseconds", "std::chrono::seconds",
                     "std::chrono::minutes", "std::chrono::hours", "std::chrono::milliseconds", "kube::Name", "Name",
                     "net::Request", "Request", "std::string"}
CO_AWAIT = re.compile(r"co_await\b([^;]*);")
BRACED = re.compile(r"(?<![\w>])([A-Za-z_][\w:]*)\{")
TEXT = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\])*"', re.S)


def suspects(source):
    source = TEXT.sub('""', source)
    for expression in CO_AWAIT.finditer(source):
        for braced in BRACED.finditer(expression.group(1)):
            if braced.group(1) not in WITH_CONSTRUCTORS:
                yield source[:expression.start()].count("\n") + 1, braced.group(1)


def test_no_braced_aggregate_stands_inside_a_co_await_expression():
    found = []
    for path in sorted(ROOT.glob("*/*.cpp")):
        if path.parts[len(ROOT.parts)] not in ("build", "test"):
            found += [f"{path.relative_to(ROOT)}:{line}: {name}{{…}}: give it a name first"
                      for line, name in suspects(path.read_text())]
    assert not found, "\n".join(found)


def test_a_braced_aggregate_is_found_and_a_listed_type_is_not():
    assert list(suspects('a();\nco_await f(Options{.x = "y"});')) == [(2, "Options")]
    assert not list(suspects('co_await sleep(Duration{5}); co_await f("Options{}");'))
