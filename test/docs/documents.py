"""What the checks of the documentation look at: Markdown files, their links, and their blocks of commands."""
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(\s*)```(\w*)\s*$")
DIRECTIVE = re.compile(r"^\s*<!--\s*(run(?: in the background)?|run with the programs"
                       r"(?: in the background)?)\s*-->\s*$")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


@dataclass
class Block:
    """A fenced ```sh block. `directive` is the comment on the line before it, "" if there is none."""
    path: Path
    line: int
    directive: str
    text: str

    @property
    def background(self):
        return "background" in self.directive

    @property
    def name(self):
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def tracked(*patterns):
    """Files of the work tree that belong to the repository (or will), in order."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                            check=True, capture_output=True, text=True).stdout
    return sorted(ROOT / line for line in set(listed.splitlines()) if (ROOT / line).exists())


def markdown_files():
    return tracked("*.md")


def prose(text):
    """The text without fenced blocks and inline code, in which brackets mean something else."""
    kept, fenced = [], False
    for line in text.splitlines():
        if FENCE.match(line) or line.lstrip().startswith("```"):
            fenced = not fenced
            kept.append("")
        else:
            kept.append("" if fenced else re.sub(r"`[^`]*`", "", line))
    return kept


def links(path):
    """(line, target) of every link and picture."""
    for number, line in enumerate(prose(path.read_text()), 1):
        for match in LINK.finditer(line):
            yield number, match.group(1) or match.group(2)


def anchors(path):
    """The fragment names that GitHub gives the headings."""
    found = set()
    for line in prose_with_code(path.read_text()):
        match = re.match(r"#{1,6}\s+(.*)", line)
        if match:
            plain = re.sub(r"[^\w\- ]", "", match.group(1).strip().lower())
            found.add(plain.replace(" ", "-"))
    return found


def prose_with_code(text):
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield line


def blocks(path, language="sh"):
    """The fenced blocks of one language, in order."""
    found, lines, position = [], path.read_text().splitlines(), 0
    while position < len(lines):
        fence = FENCE.match(lines[position])
        if not fence or not fence.group(2):
            position += 1
            continue
        end = next(i for i in range(position + 1, len(lines)) if lines[i].strip() == "```")
        if fence.group(2) == language:
            directive = DIRECTIVE.match(lines[position - 1]) if position else None
            indent = len(fence.group(1))
            body = "\n".join(line[indent:] for line in lines[position + 1:end])
            found.append(Block(path, position + 1, directive.group(1) if directive else "", body + "\n"))
        position = end + 1
    return found


def reasons():
    """The words of api/reason.hpp, in order."""
    text = (ROOT / "api" / "reason.hpp").read_text()
    macro = text[text.index("#define KWATT_REASONS"):text.index("enum class Reason")]
    return re.findall(r"X\((\w+)\)", macro.split("\n", 1)[1])


def sources():
    """Our C++ sources without the tests."""
    return [path for path in tracked("*.cpp", "*.hpp")
            if path.relative_to(ROOT).parts[0] not in ("test", "bench")]
