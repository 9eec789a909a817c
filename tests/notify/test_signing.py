"""Signed webhooks, and how a receiver verifies them."""

from __future__ import annotations

import base64

import pytest

from agent_adapter.notify import WebhookInvalid, verify_webhook
from agent_adapter.notify.signing import signed_headers

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
BODY = b'{"id": "ntf_1"}'
AT = 1_790_000_000.0


def _verify(
    headers: dict[str, str], body: bytes = BODY, secret: str = SECRET, at: float = AT
) -> str:
    return verify_webhook(secret, headers, body, clock=lambda: at)


@pytest.mark.parametrize("secret", [SECRET, "a plain secret"])
def test_a_signed_webhook_has_its_id(secret: str) -> None:
    """The id is what the receiver remembers; header names have any case."""
    headers = signed_headers(secret, "ntf_1", BODY, AT)
    assert _verify(headers, secret=secret) == "ntf_1"
    assert _verify({name.title(): value for name, value in headers.items()}, secret=secret)


def test_the_standard_s_own_example() -> None:
    """The signature of the example in the specification of Standard Webhooks."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert _verify(headers, b'{"test": 2432232314}', secret, at=1614265330.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"webhook-id": "ntf_2"}, "not signed"),
        ({"webhook-timestamp": str(int(AT) + 1)}, "not signed"),
        ({"webhook-timestamp": str(int(AT) - 301)}, "seconds away|s away"),
        ({"webhook-timestamp": "soon"}, "not a number"),
        ({"webhook-signature": "v1,AAAA"}, "not signed"),
        ({"webhook-signature": "v2,x v1"}, "not signed"),
        ({"webhook-signature": ""}, "no header webhook-signature"),
    ],
)
def test_what_was_changed_is_refused(change: dict[str, str], said: str) -> None:
    """The id, the time and the body are signed; an old time is a replay."""
    headers = signed_headers(SECRET, "ntf_1", BODY, AT) | change
    with pytest.raises(WebhookInvalid, match=said):
        _verify(headers)


def test_another_body_or_secret_is_refused() -> None:
    """Nothing counts that was signed for another body, or by somebody else."""
    headers = signed_headers(SECRET, "ntf_1", BODY, AT)
    for body, secret in ((b"{}", SECRET), (BODY, "another")):
        with pytest.raises(WebhookInvalid, match="not signed"):
            _verify(headers, body, secret)
