"""Every code block of the README and the documentation is run, or quotes a file exactly."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.cli import main

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(
    r"(?:^<!-- quote: (?P<quoted>\S+) -->\n)?^```(?P<language>\S*)[^\n]*\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One code block: its page, language, text, and the file that it quotes."""

    page: Path
    language: str
    code: str
    quoted: str | None

    @property
    def name(self) -> str:
        """What the test of this block is called."""
        first = self.code.strip().splitlines()[0][:40]
        return f"{self.page.relative_to(ROOT)}: {first}"


BLOCKS = [
    Block(page=page, language=found["language"], code=found["code"], quoted=found["quoted"])
    for page in PAGES
    for found in BLOCK.finditer(page.read_text())
]
QUOTES = [block for block in BLOCKS if block.quoted]
COMMANDS = [
    (block, line)
    for block in BLOCKS
    if block.language == "bash"
    for line in block.code.replace("\\\n", " ").splitlines()
    if line.strip()
]


def _of(page: Path, language: str) -> list[Block]:
    return [
        block
        for block in BLOCKS
        if block.page == page and block.language == language and not block.quoted
    ]


@pytest.mark.parametrize("block", QUOTES, ids=lambda block: block.name)
def test_quote_is_exact(block: Block) -> None:
    """What a page quotes from a file is there, line by line."""
    assert block.code in (ROOT / str(block.quoted)).read_text()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if _of(page, "python")], ids=lambda page: page.name
)
def test_python_runs(page: Path, tmp_path: Path) -> None:
    """A page's Python runs from top to bottom, and prints the text that the page shows."""
    if page.parent.name == "integrations":
        pytest.importorskip("ag2")
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(block.code for block in _of(page, "python")))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(block.code for block in _of(page, "text"))


@pytest.mark.parametrize("line", [line for _, line in COMMANDS])
def test_command_exists(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that a page shows is one that exists, options included."""
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text()
        assert all(re.search(rf"^{word}:", makefile, re.MULTILINE) for word in words[1:])
    elif words[0] == "curl":
        api = pytest.importorskip("agent_adapter.console.api.operations")
        method = "POST" if "--json" in words else "GET"
        asked = words[-1].partition("/api/v1")[2]
        paths = {each.path for each in api.OPERATIONS if each.method == method}
        assert re.sub(r"/[a-z]+_0123", "/{id}", asked) in paths
    elif words[:2] == ["pip", "install"]:
        extra = re.fullmatch(r"agent-adapter\[(\w+)\]", words[2])
        assert extra and extra[1] in PROJECT["project"]["optional-dependencies"]
    else:
        assert words[0] == "agent-adapter"
        depth = 2 if words[1] in ("demo", "integrations", "serve", "verify") else 3
        assert main([*words[1:depth], "--help"]) == 0
        shown = capsys.readouterr().out
        assert all(word in shown for word in words if word.startswith("--"))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_block_is_of_a_checked_kind(block: Block) -> None:
    """No block escapes: each is of a kind that some test here understands.

    Design notes may sketch in blocks without a language.
    """
    sketch = {""} if block.page.parent.name == "design" else set()
    assert block.language in {"python", "text", "bash", "toml", "json", "mermaid"} | sketch
    if block.language == "toml":
        tomllib.loads(block.code)
    if block.language == "json":
        json.loads(block.code)
    if block.language == "mermaid":
        assert block.code.startswith(("sequenceDiagram", "flowchart"))


def test_linked_files_exist() -> None:
    """A relative link of the README leads to a file."""
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_site_builds(tmp_path: Path) -> None:
    """The documentation builds, and every warning of the builder is an error."""
    pytest.importorskip("mkdocs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
