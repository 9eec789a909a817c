"""Descriptions come from the docstring, in whichever of three styles it is written."""

from __future__ import annotations

import pytest

from agent_adapter.core.schema.docstrings import read_docstring

GOOGLE = """Send an invoice.

    It goes out by mail.

    Args:
        order: which order
            to bill
        copies (int): how many

    Returns:
        the number
    """
NUMPY = """Send an invoice.

    It goes out by mail.

    Parameters
    ----------
    order : str
        which order
        to bill
    copies : int
        how many
    """
SPHINX = """Send an invoice.

    It goes out by mail.

    :param order: which order
        to bill
    :param int copies: how many
    :returns: the number
    """


@pytest.mark.parametrize(
    ("text", "more"),
    [(GOOGLE, "\n\nReturns:\n    the number"), (NUMPY, ""), (SPHINX, "\n\nReturns: the number")],
    ids=["google", "numpy", "sphinx"],
)
def test_summary_and_parameters_are_read(text: str, more: str) -> None:
    """The description has no parameter section, and each parameter has its text on one line."""
    doc = read_docstring(text)
    assert doc.description == "Send an invoice.\n\nIt goes out by mail." + more
    assert doc.parameters == {"order": "which order to bill", "copies": "how many"}


@pytest.mark.parametrize("text", [None, "", "  \n "])
def test_no_docstring_is_no_description(text: str | None) -> None:
    """Nothing is made up."""
    assert read_docstring(text).description == ""


def test_plain_text_is_the_description() -> None:
    """A docstring in no style is taken whole."""
    assert read_docstring("Does it: now.").description == "Does it: now."


@pytest.mark.parametrize(
    "text",
    [
        "Sends.\n\nArgs:\n    to: whom\n\nNote:\n    Slow.\n\nWarning:\n    No way back.",
        "Sends.\n\nNote:\n    Slow.\n\nWarning:\n    No way back.\n\nArgs:\n    to: whom",
    ],
    ids=["before", "after"],
)
def test_sections_that_are_no_parameters_belong_to_the_description(text: str) -> None:
    """Wherever they stand; none of them ends up in a parameter's text."""
    doc = read_docstring(text)
    assert doc.description == "Sends.\n\nNote:\n    Slow.\n\nWarning:\n    No way back."
    assert doc.parameters == {"to": "whom"}


def test_numpy_sections_stay_whole() -> None:
    """A section of another title follows the parameters."""
    doc = read_docstring("S.\n\nParameters\n----------\nto : str\n    whom\n\nNotes\n-----\nSlow.")
    assert doc.description == "S.\n\nNotes\n-----\nSlow."
    assert doc.parameters == {"to": "whom"}


def test_a_sphinx_field_ends_at_the_next_field_or_blank_line() -> None:
    """Its further lines need no indentation."""
    doc = read_docstring("Sends.\n\n:param to: whom,\nby name\n:param cc: more\n\nSlow.")
    assert doc.parameters == {"to": "whom, by name", "cc": "more"}
    assert doc.description == "Sends.\n\nSlow."
