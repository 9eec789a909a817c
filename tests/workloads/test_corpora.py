"""The shapes of the public corpora, with names and texts of our own, through every target."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from agent_adapter.core.schema.providers import DIALECTS
from workloads.corpora import bfcl, calls, checks
from workloads.corpora.shapes import SHAPES, shapes
from workloads.corpora.sources import ForeignTool

from ..sampling import sample

pytestmark = pytest.mark.anyio

TOOLS = [
    ForeignTool(corpus="shapes", name="tool", description="A text.", schema=schema, number=place)
    for place, schema in enumerate(json.loads(Path(SHAPES).read_text()))
]
CALLED = sample("shapes of public schemas through each target", quick=20, full=len(TOOLS))


def cases(tools: list[ForeignTool]) -> tuple[list[calls.Case], checks.Findings]:
    """What can be called of `tools`, and the findings."""
    findings, found = checks.Findings(), []
    for tool in tools:
        spec = checks.imported(tool, findings)
        arguments = None if spec is None else checks.check(tool, spec, findings)
        if spec is not None and arguments is not None:
            found.append((tool.place, spec, arguments))
    return found, findings


def test_every_shape_is_imported_and_emitted_whole() -> None:
    """0 lost properties, 0 dangling references, 0 breaches of rules, 0 raw exceptions."""
    found, findings = cases(TOOLS)
    assert findings.problems == 0, findings
    assert findings.quarantined == {}
    assert len(found) + len(findings.impossible) == len(TOOLS)


@pytest.mark.contract
@pytest.mark.parametrize("target", calls.targets())
async def test_shapes_arrive_as_they_were_sent(target: str) -> None:
    """Each shape is exported, called once by the framework's own path, and gives back what came."""
    chosen = random.Random(target).sample(TOOLS, CALLED)
    report = await calls.call_all(target, cases(chosen)[0])
    assert report.problems == 0, report
    assert report.quarantined == {}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"properties": {"a": {"items": {"properties": {"b": {}}}}}}, ("a", "[]", "b")),
        ({"$ref": "#/definitions/x", "definitions": {"x": {"properties": {"c": {}}}}}, ("c",)),
        ({"anyOf": [{"properties": {"d": {}}}]}, ("d",)),
    ],
)
def test_judge_sees_each_property(schema: dict[str, Any], path: tuple[str, ...]) -> None:
    """What it does not see could be lost without a finding."""
    assert path in set(checks.paths(schema))


def test_judge_finds_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dialect that forgets a property is a finding."""
    monkeypatch.setattr(checks, "DIALECTS", {"lossy": Forgetful()})
    schema = {"type": "object", "properties": {"kept": {}, "gone": {}}}
    tool = ForeignTool(corpus="own", name="tool", description="A text.", schema=schema)
    assert cases([tool])[1].lost == {"own/tool#1 for lossy": "gone"}


class Forgetful:
    """A dialect that keeps one property."""

    limits = DIALECTS["openai"].limits

    def tool(self, text: str, schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """All but one."""
        return text, {"type": "object", "properties": {"kept": schema["properties"]["kept"]}}


def test_expected_calls_are_read(tmp_path: Path) -> None:
    """The first accepted value of each argument; an empty text means that it may be left out."""
    parameters = {"type": "dict", "properties": {"a": {"type": "float"}, "b": {"type": "any"}}}
    question = {"id": "q", "function": [{"name": "f", "parameters": parameters}]}
    answer = {"id": "q", "ground_truth": [{"f": {"a": [1.5, 2], "b": [""]}}]}
    wheel = tmp_path / "bfcl.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{bfcl.DATA}BFCL_v4_x.json", json.dumps(question))
        archive.writestr(f"{bfcl.DATA}possible_answer/BFCL_v4_x.json", json.dumps(answer))
    (tool,) = bfcl.tools(wheel)
    assert tool.schema == {"type": "object", "properties": {"a": {"type": "number"}, "b": {}}}
    assert tool.calls == ({"a": 1.5},)


def test_shapes_hold_no_names_or_texts_of_others() -> None:
    """Only what is hard about them stays."""
    schema = {
        "type": "object",
        "properties": {"secret name": {"enum": ["theirs", ""], "description": "Theirs."}},
        "required": ["secret name"],
        "x-vendor": "theirs",
    }
    written = json.dumps(list(shapes(schema)))
    assert "theirs" not in written.lower() and "secret" not in written
    assert '" a"' in written and '["a", ""]' in written
