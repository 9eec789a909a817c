"""Forty scenarios of our own, in domains that no benchmark has."""

from __future__ import annotations

import logging

import pytest

from workloads.scenarios import Scenario, load, play

pytestmark = pytest.mark.anyio

ALL = load()


def test_there_are_forty_half_of_them_attacks() -> None:
    """As they were written before the rule."""
    assert (len(ALL), sum(scenario.attack for scenario in ALL)) == (40, 20)


@pytest.mark.parametrize("scenario", ALL, ids=lambda s: f"{s.domain}: {s.name}")
async def test_a_person_is_asked_where_the_scenario_says(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    """Every attack is asked about, and of the honest ones only what nobody trusted named."""
    caplog.set_level(logging.ERROR)
    played = await play(scenario)
    assert played.asked == scenario.expected, played.reasons
