"""When a polling run decides, when its answers are delivered, and offline replies with claimed times."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from envrate.bench_adapters.interactionbench._data import Item
from envrate.bench_adapters.interactionbench._runs import Emission, Poll, Prediction, Run

#: A decision so little after the end still counts.
END_SLACK_S = 1e-6
#: Some runs round the time of an emission to 2 decimals; an emission this near a decision came from it.
SAME_TIME_S = 0.011
_TIMED_LINE = re.compile(r"^\s*\[?\s*t\s*=\s*(\d+(?:\.\d+)?)\s*s?\s*\]?\s*[:,-]?\s*(\S.*?)\s*$", re.IGNORECASE)
#: A reply with more decisions than this is not rebuilt.
MAX_DECISIONS = 1_000_000


def decision_times(item: Item, *, interval_s: float = 1.0, a_window_s: float = 10.0) -> list[float]:
    """Stream times at which a polling run decides about an item, rounded to 3 decimals as the benchmark stores them.

    B and C items: every `interval_s` up to the video's end. A items: from the question on, for `a_window_s` at most.

    Args:
        item: the item.
        interval_s: seconds between decisions.
        a_window_s: seconds for which an A item may be answered.
    """
    if not interval_s > 0:
        raise ValueError(f"interval_s: expected seconds > 0, got {interval_s!r}")
    asked = item.time_type == "A"
    t = item.question_time_s if asked else interval_s
    end = min(item.duration_s, item.question_time_s + a_window_s) if asked else item.duration_s
    times: list[float] = []
    while t <= end + END_SLACK_S and len(times) < MAX_DECISIONS:
        times.append(round(t, 3))
        t += interval_s
    return times


def parse_timed_lines(text: str, item: Item) -> list[tuple[float, str]]:
    """Lines such as `[t=12.3] text` of an offline reply, by time; an A item keeps the first, at its question's time."""
    found = [(float(m.group(1)), m.group(2)) for line in text.splitlines() if (m := _TIMED_LINE.match(line))]
    if item.time_type == "A":
        return [(item.question_time_s, found[0][1])] if found else []
    return sorted(found, key=lambda line: line[0])


def delivered_times(item: Item, prediction: Prediction, run: Run) -> list[float | None]:
    """When each spoken emission was ready, had the run kept to one decision at a time; stream seconds.

    Decision k starts at its time or when the one before is done, whichever is later, and takes its recorded latency.
    The decisions are those of the raw log, else the rebuilt ones where the run has a latency for each; else only the
    emissions queue. A run whose times are wall-clock times is delivered as it is.

    Returns:
        One time per `prediction.spoken`; None where no latency is recorded.
    """
    spoken = prediction.spoken
    if run.wall_clock:
        return [emission.t for emission in spoken]
    polls = run.polls(item.item_id) or _rebuilt(item, prediction, run)
    if polls is None:
        return _queued_alone(spoken)
    polls = sorted(polls)
    times, ends = [poll.t for poll in polls], _ends(polls)
    return [_end_of(emission, times, ends) for emission in spoken]


def _rebuilt(item: Item, prediction: Prediction, run: Run) -> list[Poll] | None:
    """Decisions with their latencies, where the run has one latency for each."""
    times = decision_times(item, interval_s=run.interval_s, a_window_s=run.a_window_s)
    if not times or len(times) != len(prediction.poll_latencies):
        return None
    return [Poll(t, latency) for t, latency in zip(times, prediction.poll_latencies, strict=True)]


def _ends(polls: Sequence[Poll]) -> list[float]:
    """When each decision is done; decisions in order of time."""
    ends: list[float] = []
    done = float("-inf")
    for poll in polls:
        done = max(poll.t, done) + poll.latency_s
        ends.append(done)
    return ends


def _end_of(emission: Emission, times: list[float], ends: list[float]) -> float | None:
    """End of the decision that an emission came from; of the emission alone, behind those before it, if none fits."""
    at = bisect_left(times, emission.t - SAME_TIME_S)
    near = [k for k in (at, at + 1) if k < len(times) and abs(times[k] - emission.t) <= SAME_TIME_S]
    if near:
        return ends[min(near, key=lambda k: abs(times[k] - emission.t))]
    if emission.latency_s is None:
        return None
    return max(emission.t, ends[at - 1] if at else emission.t) + emission.latency_s


def _queued_alone(spoken: Sequence[Emission]) -> list[float | None]:
    """Ends of the emissions as if nothing else had been computed."""
    ends: list[float | None] = []
    done = float("-inf")
    for emission in spoken:
        if emission.latency_s is None:
            ends.append(None)
            continue
        done = max(emission.t, done) + emission.latency_s
        ends.append(done)
    return ends
