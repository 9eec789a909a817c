"""The tools of the demo: a shop with three tools, one of which needs approval."""

from __future__ import annotations

from agent_adapter.core.registry import ToolRegistry

registry = ToolRegistry()

paid_back: list[tuple[str, float]] = []
"""One entry for each time that the refund tool ran."""

_ORDERS = {"A1": ("lamp", 40.0, "arrived broken"), "B2": ("chair", 95.0, "arrived late")}


@registry.tool(effects="read")
def order_status(order_id: str) -> dict[str, str | float]:
    """Say what was ordered, what it cost and how it arrived.

    Args:
        order_id: The number on the receipt.
    """
    article, price, state = _ORDERS[order_id]
    return {"order": order_id, "article": article, "price": price, "state": state}


@registry.tool(confirm=True)
def refund(order_id: str, amount: float) -> str:
    """Pay money back for an order.

    Args:
        order_id: The number on the receipt.
        amount: In euros, at most what was paid.
    """
    paid_back.append((order_id, amount))
    return f"{amount:.2f} EUR paid back for {order_id}"


@registry.tool()
def note(order_id: str, text: str) -> str:
    """Write a note on an order.

    Args:
        order_id: The number on the receipt.
        text: The note.
    """
    return f"noted on {order_id}: {text}"
