"""`agent-adapter tools`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run


def test_list_names_every_tool_with_its_policy(run: Run) -> None:
    """`tools list` shows names, effects and rules."""
    tools = {tool["name"]: tool for tool in run("tools", "list", "shop.py", "--json").json}
    assert list(tools) == ["order_status", "refund", "break_down"]
    assert tools["order_status"]["effects"] == "read"
    assert tools["refund"]["confirm"] == "always"


def test_list_prints_a_table(run: Run) -> None:
    """Without `--json` people get a table."""
    ran = run("tools", "list", "shop.py")
    assert ran.code == 0
    assert "Pay money back." in ran.out


def test_show_has_the_schema_that_a_model_sees(run: Run) -> None:
    """`tools show` prints the neutral schema."""
    shown = run("tools", "show", "shop:registry", "refund", "--json").json
    assert set(shown["schema"]["properties"]) == {"order_id", "amount"}
    assert '"amount"' in run("tools", "show", "shop.py", "refund").out


@pytest.mark.parametrize("target", ["shop.py", "./shop.py:registry", "shop:registry", "shop"])
def test_target_may_be_a_file_or_a_module(run: Run, target: str) -> None:
    """A registry is named by its file or by its module, with or without the attribute."""
    assert run("tools", "list", target).code == 0


def test_call_runs_through_the_executor(run: Run) -> None:
    """`tools call` prints the result as JSON text, and the ledger has the call."""
    ran = run("tools", "call", "shop.py", "order_status", "order_id=A1")
    assert (ran.code, ran.out.strip()) == (0, '{"order":"A1","state":"shipped"}')
    entries = run("ledger", "show", "--json").json
    assert [entry["facts"]["tool"] for entry in entries] == ["order_status"]


def test_call_takes_arguments_as_one_object(run: Run) -> None:
    """`--args` is JSON; `KEY=VALUE` adds to it."""
    ran = run("tools", "call", "shop.py", "order_status", "--args", '{"order_id": "B2"}', "--json")
    assert ran.json == {"result": {"order": "B2", "state": "shipped"}}


def test_call_of_a_confirm_tool_waits_for_a_person(run: Run, held: str, tmp_path: Path) -> None:
    """A tool with a rule is not run: exit code 3, and a record in the inbox."""
    assert held.startswith("apr_")
    assert not (tmp_path / "paid.txt").exists()


def test_resume_runs_an_approved_call_once(run: Run, held: str, tmp_path: Path) -> None:
    """After approval `tools resume` runs the call; again, it runs nothing."""
    assert run("approvals", "approve", held).code == 0
    ran = run("tools", "resume", "shop.py", held)
    assert (ran.code, ran.out.strip()) == (0, "5.00 paid back for A1")
    run("tools", "resume", "shop.py", held)
    assert (tmp_path / "paid.txt").read_text() == "A1 5.0\n"


def test_a_held_call_says_what_to_type_next(run: Run) -> None:
    """A call that waits names its record, and the command that shows it."""
    ran = run("tools", "call", "shop.py", "refund", "order_id=A1", "amount=5")
    assert ran.code == 3
    assert "`agent-adapter approvals show apr_" in ran.err


def test_resume_of_an_undecided_call_is_still_pending(run: Run, held: str, tmp_path: Path) -> None:
    """Nothing runs before somebody decides."""
    assert run("tools", "resume", "shop.py", held).code == 3
    assert not (tmp_path / "paid.txt").exists()


def test_resume_of_a_denied_call_is_refused(run: Run, held: str, tmp_path: Path) -> None:
    """A denied call never runs."""
    run("approvals", "deny", held, "--reason", "wrong customer")
    ran = run("tools", "resume", "shop.py", held)
    assert ran.code == 1
    assert "wrong customer" in ran.err
    assert not (tmp_path / "paid.txt").exists()


def test_wrong_arguments_are_one_line_on_stderr(run: Run) -> None:
    """A wrong call says which field is wrong, on one line, without a traceback."""
    ran = run("tools", "call", "shop.py", "order_status", "order_id=5")
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 1
    assert "order_id" in ran.err


def test_a_tool_s_own_exception_shows_only_its_class(run: Run) -> None:
    """The text of a foreign exception stays private."""
    ran = run("tools", "call", "shop.py", "break_down", "how=badly", "--json")
    assert ran.code == 4, "nobody knows what the write did"
    assert ran.json["error"]["kind"] == "tool-failed"
    assert "12345" not in ran.out + ran.err


def test_an_author_s_error_is_shown(run: Run) -> None:
    """What a tool's author says with `ToolError` is for everybody to read."""
    ran = run("tools", "call", "shop.py", "break_down", "how=kindly")
    assert (ran.code, "nothing was done" in ran.err) == (1, True)


def test_check_passes_over_good_tools(run: Run) -> None:
    """`tools check` finds nothing in a good registry."""
    checked = run("tools", "check", "shop.py", "--json")
    assert (checked.code, checked.json) == (0, {"tools": 3, "findings": []})


def test_check_finds_what_will_fail(run: Run, tmp_path: Path) -> None:
    """An unknown target is an error, a bare parameter a note; the fix is named."""
    (tmp_path / "odd.py").write_text(
        "import agent_adapter as aa\n"
        "registry = aa.ToolRegistry()\n"
        "@registry.tool(targets=['agn'])\n"
        "def act(what: str) -> str:\n"
        "    'Act.'\n"
        "    return what\n"
    )
    ran = run("tools", "check", "odd.py", "--json")
    found = {(each["severity"], each["problem"]) for each in ran.json["findings"]}
    assert ran.code == 1
    assert ("error", "no integration has the name agn") in found
    assert ("note", "the parameter 'what' has no description") in found
    assert "odd.py" not in run("tools", "check", "odd.py").err


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("tools", "list", "none.py"), 1, "no file none.py"),
        (("tools", "list", "nowhere:registry"), 1, "no module 'nowhere'"),
        (("tools", "list", "shop:other"), 1, "no attribute 'other'; registries there: registry"),
        (("tools", "list", "shop:aa"), 1, "not a ToolRegistry"),
        (("tools", "show", "shop.py", "refnd"), 1, "did you mean 'refund'?"),
        (("tools", "call", "shop.py", "refund", "amount"), 2, "is not KEY=VALUE"),
        (("tools", "call", "shop.py", "refund", "--args", "[1]"), 2, "not a JSON object"),
        (("tools", "call", "shop.py", "refund", "--args", "{"), 2, "--args is not JSON"),
        (("tools", "call", "shop.py", "refund", "a=1", "a=2"), 2, "given twice"),
        (("tools", "resume", "shop.py", "apr_none"), 1, "apr_none"),
    ],
)
def test_bad_input_says_what_and_why(
    run: Run, held: str, args: tuple[str, ...], code: int, said: str
) -> None:
    """Each refusal is one line that names the thing and the reason."""
    ran = run(*args)
    assert ran.code == code, ran
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_target_that_fails_is_named_without_a_traceback(run: Run, tmp_path: Path) -> None:
    """An error inside the target's module is told with its class and text."""
    (tmp_path / "broken.py").write_text("raise ValueError('no database')\n")
    ran = run("tools", "list", "broken.py")
    assert ran.code == 1
    assert "ValueError: no database" in ran.err
    assert "Traceback" not in ran.err


def test_several_registries_must_be_told_apart(run: Run, tmp_path: Path) -> None:
    """A file with two registries needs an attribute; the error names both."""
    (tmp_path / "two.py").write_text(
        "import agent_adapter as aa\na = aa.ToolRegistry()\nb = aa.ToolRegistry()\n"
    )
    ran = run("tools", "list", "two.py")
    assert (ran.code, "two.py:a, two.py:b" in ran.err) == (2, True)


def test_a_file_of_decorated_functions_is_a_target(run: Run, tmp_path: Path) -> None:
    """Tools of the default registry need no registry of their own."""
    (tmp_path / "plain.py").write_text(
        "import agent_adapter as aa\n"
        "@aa.tool(effects='read')\n"
        "def twice_for_the_cli(n: int) -> int:\n"
        "    'Double a number.'\n"
        "    return 2 * n\n"
    )
    ran = run("tools", "call", "plain.py", "twice_for_the_cli", "n=21")
    assert (ran.code, ran.out.strip()) == (0, "42")


def test_resuming_a_call_in_doubt_is_code_4(run: Run, tmp_path: Path) -> None:
    """A write that failed in an unknown way is not run again, and the exit code says so."""
    (tmp_path / "wire.py").write_text(
        "import agent_adapter as aa\n\nregistry = aa.ToolRegistry()\n\n\n"
        "@registry.tool(confirm=True)\n"
        "def wire(amount: int) -> None:\n"
        "    'Wire money.'\n"
        "    raise RuntimeError('the line broke')\n"
    )
    assert run("tools", "call", "wire.py", "wire", "amount=5").code == 3
    record = run("approvals", "list", "--json").json[0]["id"]
    run("approvals", "approve", record)
    first = run("tools", "resume", "wire.py", record)
    assert (first.code, "ledger resolve call_" in first.err) == (4, True), first
    again = run("tools", "resume", "wire.py", record)
    assert (again.code, "ledger in-doubt" in again.err) == (4, True), again


LOSSY = """
import agent_adapter as aa

registry = aa.ToolRegistry()
registry.add(
    aa.ToolSpec.from_json_schema(
        "find",
        "Finds. " + "More words. " * 120,
        {
            "properties": {"$filter": {"type": "string", "description": "which"}},
            "anyOf": [{"required": ["$filter"]}, {"properties": {"all": {"type": "boolean"}}}],
        },
        print,
    )
)
"""


def test_check_says_what_each_target_loses(run: Run, tmp_path: Path) -> None:
    """A long description, a refused name, a union at the top: as notes with their target."""
    (tmp_path / "lossy.py").write_text(LOSSY)
    found = {}
    for target in ("anthropic", "openai"):
        ran = run("tools", "check", "lossy.py", "--target", target, "--json")
        assert ran.code == 0
        found[target] = [each["problem"] for each in ran.json["findings"] if each["target"]]
    assert found["anthropic"] == [
        "the schema for anthropic lacks anyOf",
        "anthropic sees another name for the parameter $filter",
    ]
    assert found["openai"][0].startswith("openai shows only 10")
    assert run("tools", "check", "lossy.py", "--target", "none").code == 2
