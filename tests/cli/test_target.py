"""A TARGET names a registry; nothing of it is called unless it is declared a factory."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

PLACES = '''
import functools
import agent_adapter as aa


def mark(what):
    with open("called.txt", "a") as book:
        book.write(what + "\\n")


registry = aa.ToolRegistry()


@registry.tool(confirm=True)
def wipe() -> str:
    """Wipe the disk."""
    mark("wipe")
    return "gone"


@aa.tool
def wipe_plain_for_target() -> str:
    """Wipe the disk."""
    mark("wipe_plain")
    return "gone"


def unmarked() -> str:
    """Wipe the disk."""
    mark("unmarked")
    return "gone"


registry.add(aa.ToolSpec.from_function(unmarked, confirm=True))


@functools.wraps(wipe)
def logged_wipe():
    mark("logged_wipe")
    return wipe()


class App:
    registry = aa.ToolRegistry()

    def __call__(self):
        mark("App()")
        return registry

    def make(self):
        mark("App.make")
        return registry

    @property
    def lazy(self):
        mark("App.lazy")
        return registry

    @staticmethod
    def build():
        return registry


app = App()


def make():
    mark("make")
    return registry


def make_for(env="dev"):
    mark("make_for")
    return registry


async def make_later():
    mark("make_later")
    return registry


def number():
    return 3


part = functools.partial(make)
'''


@pytest.fixture
def places(run: Run, tmp_path: Path) -> Path:
    """A module with tools, factories and what looks like one; the file that any call leaves."""
    (tmp_path / "places.py").write_text(PLACES)
    return tmp_path / "called.txt"


COMMANDS = (
    ("tools", "list", "places.py:{}"),
    ("tools", "show", "places.py:{}", "wipe"),
    ("tools", "call", "places.py:{}", "wipe"),
    ("tools", "resume", "places.py:{}", "apr_1"),
    ("tools", "check", "places.py:{}"),
    ("serve", "--port", "0", "--registry", "places.py:{}"),
    ("mcp", "serve", "places.py:{}"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: " ".join(each[:2]))
@pytest.mark.parametrize("factory", [(), ("--factory",)], ids=["plain", "factory"])
def test_d8_a_tool_as_target_is_refused(
    run: Run, places: Path, command: tuple[str, ...], factory: tuple[str, ...]
) -> None:
    """D8: no command runs a tool that is named as its target, with or without `--factory`."""
    for tool in ("wipe", "logged_wipe"):
        ran = run(*(word.format(tool) for word in command), *factory)
        assert ran.code in (1, 2) and f"places.py:{tool} is a tool" in ran.err, ran
    assert not places.exists()


@pytest.mark.parametrize(
    "attribute",
    [
        *("wipe", "wipe_plain_for_target", "logged_wipe", "unmarked", "app", "App", "app.make"),
        *("app.lazy", "make_for", "make_later", "part", "registry.tool", "number"),
    ],
)
@pytest.mark.parametrize("factory", [(), ("--factory",)], ids=["plain", "factory"])
def test_d8_siblings_are_refused(
    run: Run, places: Path, attribute: str, factory: tuple[str, ...]
) -> None:
    """D8: a tool, an instance, a class, a method, a property, a parameter: refused."""
    ran = run("tools", "list", f"places.py:{attribute}", *factory)
    assert ran.code in (1, 2) and f"places.py:{attribute}" in ran.err, ran
    assert len(ran.err.splitlines()) == 1
    assert not places.exists()


def test_a_factory_is_called_only_if_declared(run: Run, places: Path) -> None:
    """Without `--factory` the error names the option; with it the function is called once."""
    plain = run("tools", "list", "places.py:make")
    assert plain.code == 1 and "--factory" in plain.err
    assert not places.exists()
    made = run("tools", "list", "places.py:make", "--factory", "--json")
    assert [tool["name"] for tool in made.json] == ["wipe", "unmarked"]
    assert places.read_text() == "make\n"
    assert run("tools", "list", "places.py:App.build", "--factory").code == 0
    assert run("tools", "list", "places.py:App.registry").code == 0


def test_a_factory_needs_a_name(run: Run, places: Path) -> None:
    """`--factory` without an attribute says how to name the function."""
    ran = run("tools", "list", "places.py", "--factory")
    assert (ran.code, "places.py:FUNCTION" in ran.err) == (2, True)


def test_a_factory_that_fails_is_one_line(run: Run, tmp_path: Path) -> None:
    """What it raises is told with its class, `SystemExit` too."""
    (tmp_path / "bad.py").write_text(
        "import sys\ndef make():\n    raise KeyError('x')\ndef leave():\n    sys.exit(0)\n"
    )
    for name, said in (("make", "KeyError"), ("leave", "SystemExit")):
        ran = run("tools", "list", f"bad.py:{name}", "--factory")
        assert ran.code == 1 and said in ran.err and len(ran.err.splitlines()) == 1


def test_a_module_that_leaves_is_an_error(run: Run, tmp_path: Path) -> None:
    """`sys.exit(0)` while the module is read is no success."""
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    ran = run("tools", "list", "leaving.py")
    assert ran.code == 1 and "SystemExit" in ran.err
