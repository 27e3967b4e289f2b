"""What a perceiver gets out of a rendered stream is less than an ideal observer gets out of its packets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from envrate import tasks
from envrate.agents.perceivers import Perceiver
from envrate.envs import rollout
from envrate.renderers import Audio, Proprio, Screen, Video
from envrate.scorers import frontier, split
from envrate.scorers._tracking import kalman_distortion, tracking_distortion
from envrate.trace import Trace

#: Some frames come late, and so many are lost that some ticks are never heard of: nobody can know everything.
LINK = {"delay_ms": 100, "jitter": {"kind": "two-point", "low_ms": 0, "high_ms": 300, "p_high": 0.3}, "loss": 0.5}
LEVELS = [0, 100, 200, 300, 400, 600]
#: One-sided normal quantile of 99.99 %.
Z = 3.72
RENDERERS = {"audio": Audio(), "video": Video(), "screen": Screen(64, 64), "proprio": Proprio()}
#: One task per modality runs always, the other pairs every night.
ALWAYS = [("alert", "audio"), ("hold", "video"), ("track", "screen"), ("alert", "proprio")]
PAIRS = [
    pytest.param(task, kind, marks=[] if (task, kind) in ALWAYS else pytest.mark.nightly, id=f"{task}-{kind}")
    for task in ("alert", "hold", "track")
    for kind in RENDERERS
]


def run_of(task: str, kind: str, link: Any = LINK) -> Trace:
    renderer = RENDERERS[kind]
    agent = Perceiver(tasks.get(task), renderer)
    return rollout(task, agent, modality=renderer, link=link, num_envs=16, num_ticks=120, seed=3)


def check_below_the_observer(run: Trace, judged: Trace) -> None:
    """Credited throughput of `judged` is at most the ideal observer's on the packets of `run`, at each latency.

    For symbols that is the split's C_ideal; for values R_Gauss of the Kalman filter's error. What may exceed it is
    sampling error alone: the standard error of C is its 95 % interval over 3.92, that of a mean square D of n
    independent squares D sqrt(2 / n), with a tenth of the ticks as n: squares of `track` have correlation exp(-0.4).
    """
    found = frontier(judged, LEVELS, resamples=200)
    if run.task.is_tracking:
        ideal = np.minimum.accumulate(kalman_distortion(run, LEVELS))
        reached = np.minimum.accumulate(tracking_distortion(judged, LEVELS))
        scale = 1.0 - Z * np.sqrt(2 / (0.1 * len(run.ticks["tick"])))
        assert (reached >= ideal * scale).all()
        return
    ideal_at = split(run, LEVELS, readings=["output-only"])
    for level in LEVELS:
        point, bound = found.at(level, "output-only"), ideal_at.at(level, "output-only")
        error = max((point.credited_high - point.credited_low) / 3.92, 0.01)
        assert point.credited <= bound.ideal + Z * error, (level, point.credited, bound.ideal, error)


@pytest.mark.parametrize(("task", "kind"), PAIRS)
def test_a_perceiver_stays_below_the_ideal_observer(task: str, kind: str) -> None:
    run = run_of(task, kind)
    check_below_the_observer(run, run)


@pytest.mark.parametrize("task", ["alert", "hold", "track"])
def test_more_than_the_packets_say_is_caught(task: str) -> None:
    """The same agent on tokens that all arrive at once, held against the observer on that link's packets."""
    agent = Perceiver(tasks.get(task))
    run, cheat = (rollout(task, agent, link=link, num_envs=16, num_ticks=120, seed=3) for link in (LINK, None))
    check_below_the_observer(run, run)
    with pytest.raises(AssertionError):
        check_below_the_observer(run, cheat)
