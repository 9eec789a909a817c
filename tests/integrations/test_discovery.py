"""Discovery: entry points, and what becomes of a bad one."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import pytest

from agent_adapter.core.errors import IntegrationError, MissingDependency
from agent_adapter.integrations import discovery
from agent_adapter.integrations.base import IntegrationBase, ToolRunner
from agent_adapter.integrations.discovery import (
    GROUP,
    available_integrations,
    get_integration,
)


class Good(IntegrationBase):
    """An integration that works."""

    name = "good"

    def export_tool(self, spec: Any, *, executor: ToolRunner | None = None) -> Any:
        """The spec itself."""
        return spec


class Dist:
    """As much of a distribution as an entry point needs."""

    def __init__(self, name: str) -> None:
        self.name = name


class Plugins:
    """The installed plug-ins of one test: a module to point at, and the entry points."""

    def __init__(self) -> None:
        self.module = ModuleType("fake_plugins")
        self.entries: list[EntryPoint] = []
        self.looked = 0

    def add(self, name: str, value: str = "", target: Any = None, dist: str = "fake") -> None:
        """Registers `name`, pointing at `target` in the fake module or at `value`."""
        if target is not None:
            setattr(self.module, name.replace("-", "_"), target)
        value = value or f"fake_plugins:{name.replace('-', '_')}"
        entry = EntryPoint(name=name, value=value, group=GROUP)
        vars(entry)["dist"] = Dist(dist)
        self.entries.append(entry)

    def look(self, *, group: str) -> list[EntryPoint]:
        """Stands for `importlib.metadata.entry_points`."""
        assert group == "agent_adapter.integrations"
        self.looked += 1
        return list(self.entries)


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    """Discovery that sees only what a test adds."""
    fake = Plugins()
    monkeypatch.setitem(sys.modules, "fake_plugins", fake.module)
    monkeypatch.setattr(discovery, "entry_points", fake.look)
    monkeypatch.setattr(discovery, "_cache", None)
    yield fake


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The text of every warning that was logged."""
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def test_the_value_is_an_instance(plugins: Plugins) -> None:
    """An entry that names an instance gives that very instance."""
    instance = Good()
    plugins.add("good", target=instance)
    assert available_integrations() == {"good": instance}
    assert get_integration("good") is instance


def test_the_value_is_a_class(plugins: Plugins) -> None:
    """An entry that names a class gives an instance made without arguments."""
    plugins.add("good", target=Good)
    assert type(get_integration("good")) is Good


class WithArguments(Good):
    """Cannot be made without arguments."""

    def __init__(self, url: str) -> None:
        self.url = url


class NotNamed(Good):
    """Its name is not a text."""

    name = 7  # type: ignore[assignment]  # that is what is tested


class RequiresList(Good):
    """Its `requires` is a list."""

    requires = ["json"]  # type: ignore[assignment]  # noqa: RUF012 -- that is what is tested


class RequiresNumbers(Good):
    """Its `requires` holds something else than texts."""

    requires = (1,)  # type: ignore[assignment]  # that is what is tested


class ExtraNumber(Good):
    """Its `extra` is not a text."""

    extra = 1  # type: ignore[assignment]  # that is what is tested


class Exploding(Good):
    """Raises when a member is read."""

    @property
    def requires(self) -> Any:  # type: ignore[override]  # that is what is tested
        """Raises."""
        raise RuntimeError("boom")


class Exiting(Good):
    """Ends the program when it is made."""

    def __init__(self) -> None:
        sys.exit(3)


BAD: list[tuple[str, str, Any, str]] = [
    ("Module or attribute missing", "no_such_module:X", None, "No module named"),
    ("Module or attribute missing", "fake_plugins:nothing", None, "AttributeError"),
    ("Module or attribute missing", "not a value", None, "failed"),
    ("Import or constructor raises", "", WithArguments, "TypeError"),
    ("Import or constructor raises", "", Exiting, "SystemExit"),
    ("Import or constructor raises", "", Exploding, "RuntimeError: boom"),
    ("Not an `Integration`", "", object(), "object is not an Integration: it lacks name"),
    ("Not an `Integration`", "", print, "is not an Integration"),
    ("Bad attribute types", "", NotNamed(), "`name` must be a str"),
    ("Bad attribute types", "", RequiresList(), "`requires` must be a tuple of str"),
    ("Bad attribute types", "", RequiresNumbers(), "`requires` must be a tuple of str"),
    ("Bad attribute types", "", ExtraNumber(), "`extra` must be a str or None"),
    ("`name` != entry-point name", "", Good(), "it is named 'good', its entry point 'bad'"),
]


@pytest.mark.parametrize(
    ("row", "value", "target", "reason"),
    BAD,
    ids=lambda part: str(part).partition(" at 0x")[0][:40],
)
def test_a_bad_entry_is_skipped_with_one_warning(
    plugins: Plugins,
    caplog: pytest.LogCaptureFixture,
    row: str,
    value: str,
    target: Any,
    reason: str,
) -> None:
    """Each row of the problem table: one warning with name and reason, the others still work."""
    plugins.add("bad", value, target)
    plugins.add("good", target=Good())
    assert list(available_integrations()) == ["good"], row
    (text,) = warnings_of(caplog)
    assert "'bad'" in text and reason in text


def test_an_import_that_raises_is_skipped(
    plugins: Plugins, caplog: pytest.LogCaptureFixture, tmp_path: Any, monkeypatch: Any
) -> None:
    """Import raises (a bug in the plug-in): skipped, the reason has the exception."""
    (tmp_path / "raising_plugin.py").write_text("raise KeyError('bug')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.add("bad", "raising_plugin:X")
    assert available_integrations() == {}
    assert "KeyError: 'bug'" in warnings_of(caplog)[0]


def test_the_first_of_two_names_wins(plugins: Plugins, caplog: pytest.LogCaptureFixture) -> None:
    """Name already taken: the first by distribution wins, in whatever order they are installed."""
    first, second = Good(), Good()
    plugins.module.first, plugins.module.second = first, second  # type: ignore[attr-defined]  # fake
    plugins.add("good", "fake_plugins:second", dist="zebra")
    plugins.add("good", "fake_plugins:first", dist="aardvark")
    assert get_integration("good") is first
    plugins.entries.reverse()
    assert available_integrations(refresh=True)["good"] is first
    assert len(warnings_of(caplog)) == 2
    assert "zebra" in warnings_of(caplog)[0] and "already taken" in warnings_of(caplog)[0]


def test_a_broken_first_leaves_the_name_free(plugins: Plugins) -> None:
    """An entry that cannot be loaded takes no name."""
    plugins.add("good", "no_such_module:X", dist="aardvark")
    plugins.add("good", target=Good(), dist="zebra")
    assert list(available_integrations()) == ["good"]


@pytest.mark.parametrize("name", ["ag2", "agno"])
def test_a_built_in_name_cannot_be_taken(
    plugins: Plugins, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """A plug-in cannot pose as a built-in, even where the built-in itself is not there."""
    impostor = type("Impostor", (Good,), {"name": name})()
    plugins.add(name, target=impostor, dist="aaa")
    assert available_integrations() == {}
    assert "built-in" in warnings_of(caplog)[0]


def test_warnings_come_once(plugins: Plugins, caplog: pytest.LogCaptureFixture) -> None:
    """The answer is cached: one look and one warning, until a refresh."""
    plugins.add("bad", "no_such_module:X")
    for _ in range(3):
        available_integrations()
    assert (plugins.looked, len(warnings_of(caplog))) == (1, 1)
    plugins.add("good", target=Good())
    assert available_integrations() == {}
    assert list(available_integrations(refresh=True)) == ["good"]
    assert plugins.looked == 2


def test_the_answer_is_a_copy(plugins: Plugins) -> None:
    """Changing the mapping changes nothing for the next caller."""
    plugins.add("good", target=Good())
    available_integrations().clear()
    assert list(available_integrations()) == ["good"]


def test_an_unknown_name_lists_what_there_is(plugins: Plugins) -> None:
    """`IntegrationError` names what was asked, a near match, and what exists."""
    plugins.add("good", target=Good())
    with pytest.raises(IntegrationError) as caught:
        get_integration("goood")
    text = str(caught.value)
    assert "'goood'" in text and "did you mean 'good'?" in text and "available: good" in text


def test_an_unknown_name_where_nothing_is_installed(plugins: Plugins) -> None:
    """Without any integration the message says so."""
    with pytest.raises(IntegrationError, match="available: none"):
        get_integration("good")


def test_a_skipped_name_says_why(plugins: Plugins) -> None:
    """Asking for an entry that was skipped repeats the reason."""
    plugins.add("bad", "no_such_module:X")
    with pytest.raises(IntegrationError, match=r"'bad' was skipped.*no_such_module"):
        get_integration("bad")


def test_a_missing_framework_is_not_a_bad_entry(
    plugins: Plugins, caplog: pytest.LogCaptureFixture
) -> None:
    """An integration without its framework is available; asking for it names what to install."""

    class Absent(Good):
        requires = ("no_such_framework",)
        extra = "absent"

    plugins.add("good", target=Absent())
    assert list(available_integrations()) == ["good"]
    assert warnings_of(caplog) == []
    with pytest.raises(MissingDependency, match="no_such_framework"):
        get_integration("good")


def test_an_interrupt_is_not_swallowed(plugins: Plugins) -> None:
    """Ctrl-C while a plug-in loads ends the look-up."""

    class Interrupted(Good):
        def __init__(self) -> None:
            raise KeyboardInterrupt

    plugins.add("good", target=Interrupted)
    with pytest.raises(KeyboardInterrupt):
        available_integrations()


def test_the_built_ins_are_registered() -> None:
    """The real entry points give `ag2` and `agno`."""
    assert {"ag2", "agno"} <= set(available_integrations(refresh=True))


def test_looking_loads_no_framework() -> None:
    """Finding every integration imports none of their frameworks."""
    code = (
        "import sys; from agent_adapter.integrations.discovery import available_integrations\n"
        "names = available_integrations()\n"
        "roots = [root for each in names.values() for root in each.requires]\n"
        "print(sorted(names), [root for root in roots if root in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    entries = entry_points(group=discovery.GROUP)
    names = sorted(each.name for each in entries if each.value.startswith("agent_adapter."))
    assert done.stdout.strip() == f"{names} []"
    assert done.stderr == ""
