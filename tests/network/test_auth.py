"""Who may join: tokens, and the names that they stand for."""

from __future__ import annotations

import pytest

from agent_adapter.core.errors import AuthError
from agent_adapter.network import TokenAuth

pytestmark = pytest.mark.anyio

TOKEN = "a-token-of-sixteen-or-more"


async def test_token_stands_for_names() -> None:
    """A known token gives the names that it stands for."""
    auth = TokenAuth({TOKEN: ["billing", "support-*"], "another-long-token": "ops"})
    assert await auth.names_for(TOKEN) == ("billing", "support-*")
    assert await auth.names_for("another-long-token") == ("ops",)


@pytest.mark.parametrize("shown", [None, "", "wrong", TOKEN[:-1], TOKEN + "x"])
async def test_other_tokens_are_refused(shown: str | None) -> None:
    """No token, or another one, is refused without a hint at the right one."""
    with pytest.raises(AuthError) as caught:
        await TokenAuth({TOKEN: "a"}).names_for(shown)
    assert TOKEN not in str(caught.value)


def test_short_tokens_are_refused() -> None:
    """A token that could be guessed is refused with the way to make one."""
    with pytest.raises(ValueError, match=r"secrets\.token_urlsafe"):
        TokenAuth({"secret": "a"})


def test_tokens_are_not_shown() -> None:
    """A token is not in what the authenticator prints."""
    assert TOKEN not in repr(TokenAuth({TOKEN: "a"}))
