"""InteractionBench's scores of one item: the record that its records.jsonl holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from envrate import _checks
from envrate.bench_adapters.interactionbench._content import OptionMatcher, last_number, lexical
from envrate.bench_adapters.interactionbench._data import Item
from envrate.bench_adapters.interactionbench._judges import Judge
from envrate.bench_adapters.interactionbench._matching import Matching, match, timing
from envrate.bench_adapters.interactionbench._options import Options
from envrate.bench_adapters.interactionbench._runs import Emission, Prediction

#: Seconds per decision that the benchmark calls real time.
REALTIME_S = 0.2
#: The last segment reaches so far beyond the video's end.
SEGMENT_EDGE_S = 1e-6
COUNT_TOLERANCE = 1e-9

Record = dict[str, Any]


@dataclass(frozen=True)
class Protocol:
    """The arithmetic's parameters; the defaults are those of the paper.

    Args:
        delta: timing credit falls linearly to 0 at this delay, seconds.
        pre_tol: an emission up to so many seconds before an event belongs to it; may be infinite.
        use_gate: let an emission take an event only if its content is right (triggers and counts).
        gate_thresh: the content score needed for that.
        key: options by item id; the items in it are scored by the option matcher.
        judge: scores free text; None is the lexical scorer.
    """

    delta: float = 5.0
    pre_tol: float = 1.0
    use_gate: bool = False
    gate_thresh: float = 0.3
    key: Mapping[str, Options] = field(default_factory=dict)
    judge: Judge | None = None

    def __post_init__(self) -> None:
        """Checks the numbers."""
        _checks.number("delta", self.delta, 0.0, open_low=True)
        if self.pre_tol != float("inf"):
            _checks.number("pre_tol", self.pre_tol, 0.0)
        _checks.number("gate_thresh", self.gate_thresh, 0.0, 1.0)

    def content(self, item: Item, *, description: bool = False) -> Callable[[str | None, str | None], float]:
        """The function (reference, response) -> 0 ... 1 that scores an item's content.

        Args:
            item: the item.
            description: whether a judge that scores descriptions (`vdc`) is to be asked.
        """
        options = self.key.get(item.item_id)
        if options is not None and options.correct is not None:
            matcher = OptionMatcher(options.options, options.correct)
            return lambda reference, response: matcher(response)
        if self.judge is None:
            return lexical
        ask = getattr(self.judge, "vdc", self.judge) if description else self.judge
        return lambda reference, response: float(ask(item.question, reference or "", response or ""))


def score_item(item: Item, prediction: Prediction, protocol: Protocol = Protocol()) -> Record:  # noqa: B008 - frozen
    """The record of one item; times are stream seconds, scores 0 to 100, None where a score is not defined."""
    spoken = prediction.spoken
    record: Record = {
        "item_id": item.item_id,
        "video_id": item.video_id,
        "capability": item.capability,
        "capability_group": item.group,
        "core_realtime": item.core_realtime,
        "time_type": item.time_type,
        "interaction_type": item.interaction_type,
        "sub_tag": item.sub_tag,
        "range_length": item.range_length,
        "domain": item.domain,
        "duration_s": item.duration_s,
        "family": item.family,
    }
    record |= _negative(spoken) if item.family == "negative" else _positive(item, spoken, protocol)
    record |= _pace(item, prediction)
    if item.item_id in protocol.key:
        record["mcq"] = True
    if prediction.model is not None:
        record["model"] = prediction.model
    if prediction.run is not None:
        record["run"] = prediction.run
    return record


def _pace(item: Item, prediction: Prediction) -> Record:
    """How much it said and how long it took, blank emissions included."""
    said = len(prediction.emissions)
    record: Record = {"emissions_per_min": round(60.0 * said / item.duration_s, 2) if item.duration_s > 0 else None}
    latencies = prediction.latencies
    if latencies:
        average = mean(latencies)
        record["poll_latency_mean"] = round(average, 3)
        record["poll_latency_max"] = round(max(latencies), 3)
        record["realtime_factor"] = round(average / REALTIME_S, 2)
    if prediction.n_polls:
        record["chatter_rate"] = round(said / prediction.n_polls, 3)
    return record


def _negative(spoken: tuple[Emission, ...]) -> Record:
    score = 0.0 if spoken else 100.0
    return {
        "total_score": score,
        "false_alarm": bool(spoken),
        "n_violations": len(spoken),
        "v_spurious": len(spoken),
        "v_premature": 0,
        "v_redundant": 0,
        "silence_compliance": score,
        "timing_score": score,
    }


def _positive(item: Item, spoken: tuple[Emission, ...], protocol: Protocol) -> Record:
    matching = match(
        [event.time_s for event in item.events],
        [emission.t for emission in spoken],
        pre_tol=protocol.pre_tol,
        gate=_gate(item, spoken, protocol),
    )
    numbers = timing(matching, len(spoken), delta=protocol.delta)
    delays = [d for d in matching.delays if d is not None]
    record: Record = {
        "timing_accuracy": numbers.ta,
        "silence_compliance": numbers.sc,
        "n_gt": len(item.events),
        "n_resp": len(spoken),
        "n_matched": matching.matched,
        "n_violations": matching.violations,
        "v_premature": matching.premature,
        "v_redundant": matching.redundant,
        "v_spurious": matching.spurious,
        "response_precision": round(matching.matched / len(spoken), 3) if spoken else None,
        "delay_mean_s": round(mean(delays), 2) if delays else None,
        "miss_rate": round(1.0 - matching.matched / len(item.events), 3),
        "timing_score": numbers.score,
    }
    if item.family == "C_segments":
        record |= _segments(item, spoken, protocol)
        record["total_score"] = record["accuracy"]
        return record
    by_family = {"A_retro_qa": _asked, "B_trigger": _trigger, "C_counting": _counting}
    record |= by_family[item.family](item, spoken, matching, protocol)
    axes = [axis for axis in (record["accuracy"], numbers.score) if axis is not None]
    record["total_score"] = round(mean(axes), 1)
    return record


def _gate(item: Item, spoken: tuple[Emission, ...], protocol: Protocol) -> Callable[[int, int], bool] | None:
    """Whether emission i may take event n; None where everything may."""
    if not protocol.use_gate or item.family not in ("B_trigger", "C_counting"):
        return None
    if item.family == "C_counting":

        def same_number(i: int, n: int) -> bool:
            wanted, given = last_number(item.events[n].content), last_number(spoken[i].content)
            return wanted is None or (given is not None and abs(wanted - given) <= COUNT_TOLERANCE)

        return same_number
    content = protocol.content(item)
    return lambda i, n: content(item.events[n].content, spoken[i].content) >= protocol.gate_thresh


def _asked(item: Item, spoken: tuple[Emission, ...], matching: Matching, protocol: Protocol) -> Record:
    """A question revealed now: is the answer that took it right."""
    taken, evidence = matching.taken[0], item.timed[0].evidence_time_s
    score = 0.0
    if taken is not None:
        score = protocol.content(item, description=True)(item.events[0].content, spoken[taken].content)
    record: Record = {"accuracy": round(100.0 * score, 1), "answered": taken is not None}
    if evidence is not None:
        record["memory_span_s"] = round(item.question_time_s - evidence, 2)
    return record


def _matched_content(
    item: Item, spoken: tuple[Emission, ...], matching: Matching, protocol: Protocol
) -> float | None:
    """Mean content score of the events that were taken; None without any."""
    content = protocol.content(item)
    scores = [
        content(event.content, spoken[taken].content)
        for event, taken in zip(item.events, matching.taken, strict=True)
        if taken is not None
    ]
    return round(100.0 * mean(scores), 1) if scores else None


def _trigger(item: Item, spoken: tuple[Emission, ...], matching: Matching, protocol: Protocol) -> Record:
    score = _matched_content(item, spoken, matching, protocol)
    return {"accuracy": 0.0 if score is None else score, "content_score": score}


def _counting(item: Item, spoken: tuple[Emission, ...], matching: Matching, protocol: Protocol) -> Record:
    """The last number said against the last number annotated; an option key does not change that."""
    wanted = next((n for a in reversed(item.timed) if (n := last_number(a.content)) is not None), None)
    given = next((n for e in reversed(spoken) if (n := last_number(e.content)) is not None), None)
    error = None if wanted is None or given is None else abs(wanted - given)
    right = error is not None and error <= COUNT_TOLERANCE
    return {
        "accuracy": None if wanted is None else 100.0 * right,
        "content_score": _matched_content(item, spoken, matching, protocol),
        "gt_final_count": wanted,
        "pred_final_count": given,
        "final_count_abs_err": error,
    }


def _segments(item: Item, spoken: tuple[Emission, ...], protocol: Protocol) -> Record:
    """A line per step: what was said between one event and the next, without tolerance, against the event's text."""
    content = protocol.content(item, description=True)
    starts = [event.time_s for event in item.events]
    ends = [*starts[1:], max(item.duration_s, starts[-1]) + SEGMENT_EDGE_S]
    said = [
        " ".join(e.content for e in spoken if e.content is not None and start <= e.t < end)
        for start, end in zip(starts, ends, strict=True)
    ]
    scores = [
        content(event.content, words) if words else 0.0 for event, words in zip(item.events, said, strict=True)
    ]
    covered = [score for score, words in zip(scores, said, strict=True) if words]
    return {
        "accuracy": round(100.0 * mean(scores), 1),
        "covered_accuracy": round(100.0 * mean(covered), 1) if covered else None,
        "segment_coverage": round(len(covered) / len(starts), 3),
    }
