"""Preset tasks by name. A new preset is one function and one line in `PRESETS`."""

from __future__ import annotations

from collections.abc import Callable

from envrate import _checks
from envrate._responses import Threshold
from envrate.latents import GaussianProcess, MarkovChain
from envrate.task import Probes, Severity, Task


def _alert() -> Task:
    """The worked example: three states drawn afresh at 2 Hz, an alert due on the last; demand 2 bits/s exactly."""
    return Task(
        latent=MarkovChain(((0.25, 0.25, 0.5),) * 3),
        response=(0, 0, 1),
        tick_ms=500,
        micro_turn_ms=100,
        horizon_ms=2000,
        name="alert",
    )


def _alert_probed() -> Task:
    """The worked example with a follow-up question on a tenth of its ticks: what was it?"""
    return _alert().replace(probes=Probes(rate=0.1, after_ms=2000), name="alert-probed")


def _watch() -> Task:
    """Rare salient events of two kinds that last a while; a response is due at the onset only."""
    idle = (0.96, 0.02, 0.0, 0.02, 0.0)
    return Task(
        latent=MarkovChain(
            (
                idle,
                (0.2, 0.0, 0.8, 0.0, 0.0),  # onset of kind 1
                (0.25, 0.0, 0.75, 0.0, 0.0),  # kind 1 goes on
                (0.2, 0.0, 0.0, 0.0, 0.8),  # onset of kind 2
                (0.25, 0.0, 0.0, 0.0, 0.75),  # kind 2 goes on
            )
        ),
        response=(0, 1, 0, 2, 0),
        severity=Severity(miss=20.0, wrong=5.0, over=1.0),
        reply="named",
        name="watch",
    )


def _hold() -> Task:
    """A sticky state whose name is due at every tick: most ticks bring nothing new."""
    return Task(latent=MarkovChain(((0.9, 0.1), (0.1, 0.9))), response=(1, 2), reply="named", name="hold")


def _choice8() -> Task:
    """Eight options, one of them due at every tick, drawn afresh."""
    return Task(
        latent=MarkovChain(((0.125,) * 8,) * 8),
        response=tuple(range(1, 9)),
        tick_ms=1000,
        exchangeable=(tuple(range(1, 9)),),
        name="choice8",
    )


def _track() -> Task:
    """Follow a value that wanders and returns (Ornstein-Uhlenbeck, 1 s), to a mean squared error of a quarter."""
    return Task(
        latent=GaussianProcess("ou", timescale_ms=1000.0),
        response="track",
        tick_ms=200,
        micro_turn_ms=100,
        tolerance=0.25,
        name="track",
    )


def _track3() -> Task:
    """Follow three smooth values that move together (Matern 3/2, 1.5 s), to half a unit of error in all."""
    return Task(
        latent=GaussianProcess(
            "matern32",
            timescale_ms=1500.0,
            coregionalisation=((1.0, 0.6, 0.2), (0.6, 1.0, -0.3), (0.2, -0.3, 1.0)),
        ),
        response="track",
        tick_ms=200,
        micro_turn_ms=100,
        tolerance=0.5,
        name="track3",
    )


def _exceed() -> Task:
    """Alert while a wandering value (Ornstein-Uhlenbeck, 2 s) is more than two standard deviations out."""
    return Task(
        latent=GaussianProcess("ou", timescale_ms=2000.0),
        response=Threshold(edges=(-2.0, 2.0), symbols=(1, 0, 1)),
        severity=Severity(miss=20.0, wrong=5.0, over=1.0),
        reply="named",
        name="exceed",
    )


PRESETS: dict[str, Callable[[], Task]] = {
    "alert": _alert,
    "alert-probed": _alert_probed,
    "watch": _watch,
    "hold": _hold,
    "choice8": _choice8,
    "track": _track,
    "track3": _track3,
    "exceed": _exceed,
}


def get(name: str) -> Task:
    """The preset task of that name; raises ValueError with the names there are."""
    return PRESETS[_checks.choice("task", name, PRESETS)]()


def names() -> list[str]:
    """Names of the preset tasks."""
    return list(PRESETS)
