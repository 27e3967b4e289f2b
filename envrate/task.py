"""Task: what is demanded. One of the two narrow waists; everything left of a Trace is built from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks, _responses
from envrate._responses import TRACK
from envrate._spec import from_dict, tagged, to_dict
from envrate.rd import Bracket, RDCurve

FloatArray = NDArray[np.float64]

#: A schedule that tells more about the required response than this, in bits per tick, is refused.
MAX_PROBE_LEAK = 1e-9


def _weights(name: str, value: Any, count: int, symbols: str) -> FloatArray:
    """(count,) weights from a number or one number per symbol; each > 0."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(count, float(array))
    if array.shape != (count,):
        raise ValueError(f"{name}: expected a number or {count} numbers, one per {symbols}, got shape {array.shape}")
    if not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"{name}: expected weights > 0, got {array.tolist()}")
    return array


@tagged("severity", "severity")
@dataclass(frozen=True)
class Severity:
    """How bad each consequence of a tick is. Symbols 1 ... A-1 are responses, 0 is null.

    Args:
        miss: silence where `a` was required; a number or one per a = 1 ... A-1.
        wrong: another response where `a` was required; a number, one per a, or an (A-1, A-1) nested sequence
            over (required, given) whose diagonal is ignored.
        over: a response where none was required; a number or one per response given.
    """

    miss: float | tuple[float, ...] = 1.0
    wrong: float | tuple[float, ...] | tuple[tuple[float, ...], ...] = 1.0
    over: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        """Stores arrays and lists as tuples."""
        for name in ("miss", "wrong", "over"):
            value = np.asarray(getattr(self, name), dtype=np.float64).tolist()
            frozen = tuple(tuple(v) if isinstance(v, list) else v for v in value) if isinstance(value, list) else value
            object.__setattr__(self, name, frozen)

    def matrix(self, num_symbols: int) -> FloatArray:
        """(A, A) distortion d[required, outcome], zero on the diagonal; raises ValueError on a wrong length."""
        count = num_symbols - 1
        d = np.zeros((num_symbols, num_symbols))
        d[1:, 0] = _weights("severity.miss", self.miss, count, "required response")
        d[0, 1:] = _weights("severity.over", self.over, count, "response given")
        wrong = np.asarray(self.wrong, dtype=np.float64)
        if wrong.ndim == 2:
            if wrong.shape != (count, count):
                raise ValueError(f"severity.wrong: expected shape ({count}, {count}), got {wrong.shape}")
            off = wrong[~np.eye(count, dtype=bool)]
            _weights("severity.wrong", off, off.size, "pair of responses")
            d[1:, 1:] = wrong
        else:
            d[1:, 1:] = _weights("severity.wrong", self.wrong, count, "required response")[:, None]
        np.fill_diagonal(d, 0.0)
        return d


@tagged("probes", "probes")
@dataclass(frozen=True)
class Probes:
    """Follow-up questions that tell a correct silence from a miss.

    Args:
        rate: probability that a tick is probed; a number, the same for each tick whatever it holds. One number per
            latent state is read too, and refused by the task with its leak unless it tells nothing.
        after_ms: from the tick's onset to the question; at least the task's horizon.
        question: g, one answer 0 ... G-1 per latent state, refining the response; None asks for the state itself.
        deadline_ms: from the question's sending to the last moment an answer counts.
    """

    rate: float | tuple[float, ...] = 0.1
    after_ms: int = 2000
    question: tuple[int, ...] | None = None
    deadline_ms: int = 2000

    def __post_init__(self) -> None:
        """Checks the schedule and the question."""
        rates = np.atleast_1d(np.asarray(self.rate, dtype=np.float64))
        for rate in rates.tolist():
            _checks.number("probes.rate", rate, 0.0, 1.0)
        object.__setattr__(self, "rate", float(rates[0]) if np.ndim(self.rate) == 0 else tuple(rates.tolist()))
        object.__setattr__(self, "after_ms", _checks.integer("probes.after_ms", self.after_ms, 1, unit="ms"))
        object.__setattr__(self, "deadline_ms", _checks.integer("probes.deadline_ms", self.deadline_ms, 1, unit="ms"))
        if self.question is not None:
            answers = tuple(_checks.integer("probes.question", answer, 0) for answer in self.question)
            if set(answers) != set(range(max(answers) + 1)):
                raise ValueError(f"probes.question: expected the answers 0 ... {max(answers)} all used, got {answers}")
            object.__setattr__(self, "question", answers)


@tagged("task", "task")
@dataclass(frozen=True)
class Task:
    """A hidden latent, the response it requires at each tick, and how bad each failure is.

    Args:
        latent: the law of z_t, or its dict. It is kept as sampled on the tick: a chain in continuous time becomes
            the chain from tick to tick, so give it anew when you change the tick.
        response: f, one symbol 0 ... A-1 per latent state, 0 is null: do nothing. For a Gaussian process a
            `Threshold`, or "track": the value itself is due, at squared error.
        tick_ms: T, the time between moves of the latent; part of the unit, compare tasks at equal T.
        micro_turn_ms: m, the agent's step; at most one tick.
        horizon_ms: the largest allowed latency.
        severity: weights of miss, wrong and over-actuation, or its dict.
        probes: follow-up questions, or None.
        exchangeable: groups of response symbols that are pooled in scoring, such as the options of a
            multiple-choice question.
        tolerance: D*, the severity per tick up to which the system counts as keeping up; 0 asks for every bit. A
            tracking task needs one above 0: no finite rate tracks a real number exactly.
        reply: how a response names its tick: "newest" (the newest tick observed) or "named" (an action factor).
        name: a name for tables.

    Raises:
        ValueError: an argument out of range, a response of the wrong length, a question that does not refine the
            response, a probe schedule that tells the response.
    """

    latent: Any  # MarkovChain | GaussianProcess | Product
    response: Any  # (K,) tuple of symbols | Threshold | "track"
    tick_ms: int = 500
    micro_turn_ms: int = 200
    horizon_ms: int = 2000
    severity: Severity = Severity()
    probes: Probes | None = None
    exchangeable: tuple[tuple[int, ...], ...] = ()
    tolerance: float = 0.0
    reply: str = "newest"
    name: str = "task"

    def __post_init__(self) -> None:
        """Checks every field; dicts become their objects."""
        put = object.__setattr__
        put(self, "latent", from_dict("law", self.latent, "latent"))
        put(self, "severity", from_dict("severity", self.severity))
        put(self, "micro_turn_ms", _checks.integer("micro_turn_ms", self.micro_turn_ms, 1, 10**6, "ms"))
        put(self, "tick_ms", _checks.integer("tick_ms", self.tick_ms, self.micro_turn_ms, 10**6, "ms"))
        put(self, "horizon_ms", _checks.integer("horizon_ms", self.horizon_ms, self.micro_turn_ms, 10**6, "ms"))
        put(self, "tolerance", _checks.number("tolerance", self.tolerance, 0.0))
        _checks.choice("reply", self.reply, ("newest", "named"))
        put(self, "latent", self.latent.at_tick(self.tick_ms))
        put(self, "response", _responses.checked(self.latent, self.response))
        if self.is_tracking and not (self.tolerance > 0 and self.probes is None):
            raise ValueError(
                f"tolerance: a tracking task expected D* > 0 and no probes, got {self.tolerance:g} and {self.probes}"
            )
        self.severity.matrix(self.num_symbols)
        put(self, "exchangeable", tuple(tuple(int(a) for a in group) for group in self.exchangeable))
        members = [a for group in self.exchangeable for a in group]
        if len(set(members)) != len(members) or not set(members) <= set(range(1, self.num_symbols)):
            raise ValueError(
                f"exchangeable: expected disjoint groups of responses 1 ... {self.num_symbols - 1}, "
                f"got {self.exchangeable}"
            )
        if self.probes is not None:
            put(self, "probes", from_dict("probes", self.probes))
            self._check_probes(self.probes)

    def _check_probes(self, probes: Probes) -> None:
        if probes.after_ms < self.horizon_ms:
            raise ValueError(
                f"probes.after_ms: {probes.after_ms} ms is before the horizon of {self.horizon_ms} ms; an agent could "
                "then wait for the question and still answer in time: use after_ms >= horizon_ms"
            )
        states = len(self.table)
        if isinstance(probes.rate, tuple) and len(probes.rate) != states:
            raise ValueError(f"probes.rate: expected a number or {states} of them, got {len(probes.rate)}")
        if probes.question is not None:
            if len(probes.question) != states:
                raise ValueError(
                    f"probes.question: expected {states} answers, one per state, got {len(probes.question)}"
                )
            for answer in set(probes.question):
                told = {a for a, g in zip(self.table, probes.question, strict=True) if g == answer}
                if len(told) > 1:
                    raise ValueError(
                        f"probes.question: answer {answer} covers the responses {sorted(told)}; expected a question "
                        "that refines the response"
                    )
        leak = self.probe_leak()
        if leak > MAX_PROBE_LEAK:
            raise ValueError(
                f"probes.rate: the schedule tells {leak:.4g} bits about the required response of a tick; "
                "expected the same rate for each state"
            )

    # -- symbols ------------------------------------------------------------------------------------------------

    @property
    def is_tracking(self) -> bool:
        """Whether the latent's value itself is due, at squared error."""
        return isinstance(self.response, str) and self.response == TRACK

    @property
    def table(self) -> tuple[int, ...]:
        """(L,) required symbol per letter: a letter is a latent state, or an interval of a `Threshold`."""
        return _responses.table(self.response)

    @property
    def num_symbols(self) -> int:
        """A, the size of the response alphabet, null included; 1 for a tracking task."""
        return max(self.table) + 1

    @property
    def question(self) -> tuple[int, ...]:
        """(L,) g, the answer that a probe asks for in each latent state, or interval of a `Threshold`."""
        asked = self.probes.question if self.probes is not None else None
        return tuple(range(len(self.table))) if asked is None else asked

    @property
    def num_answers(self) -> int:
        """G, the number of answers to a probe; 0 without probes."""
        return 0 if self.probes is None else max(self.question) + 1

    @cached_property
    def pmf(self) -> FloatArray:
        """(A,) stationary law of the required response."""
        law = np.bincount(self.table, weights=self._letter_pmf, minlength=self.num_symbols)
        return np.asarray(law, dtype=np.float64)

    @property
    def _letter_pmf(self) -> FloatArray:
        return _responses.letter_pmf(self.latent, self.response)

    @cached_property
    def distortion(self) -> FloatArray:
        """(A, A) severity d[required, outcome]."""
        return self.severity.matrix(self.num_symbols)

    @property
    def ticks_nameable(self) -> int:
        """Size of the named-reply action factor: ticks back from the current one that a response may name."""
        return self.horizon_ms // self.tick_ms + 1

    @property
    def is_memoryless(self) -> bool:
        """Whether the required responses are independent from tick to tick."""
        return bool(self.latent.is_memoryless)

    # -- demand -------------------------------------------------------------------------------------------------

    def demand(self, D: float | None = None) -> Bracket:  # noqa: N803 - the field's symbol
        """R(D) in bits per second at severity D per tick, with its certificate.

        None is 0, every bit; for a tracking task it is the tolerance D*.
        """
        from envrate import _demand

        return _demand.demand(self, (self.tolerance if self.is_tracking else 0.0) if D is None else D)

    def demand_curve(self) -> RDCurve:
        """R(D) in bits per second against the severity per tick, from every bit to none, with its bounds."""
        from envrate import _demand

        return _demand.demand_curve(self)

    def probe_leak(self) -> float:
        """I(probed; required response) in bits per tick: 0 for a schedule that does not look at the latent."""
        if self.probes is None or not isinstance(self.probes.rate, tuple):
            return 0.0
        pi, rate = self._letter_pmf, np.asarray(self.probes.rate)
        probed = np.bincount(self.table, weights=pi * rate, minlength=self.num_symbols)
        joint = np.stack([probed, self.pmf - probed])
        product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        seen = joint > 0
        return float(max(0.0, (joint[seen] * np.log2(joint[seen] / product[seen])).sum()))

    # -- JSON ---------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description; `Task.from_dict` gives the same task back."""
        return dict(to_dict(self))

    @classmethod
    def from_dict(cls, value: dict[str, Any] | Task) -> Task:
        """The task that `to_dict` described; raises ValueError naming the key that is wrong."""
        return from_dict("task", value)  # type: ignore[no-any-return]

    def replace(self, **changes: Any) -> Task:
        """A copy with some arguments changed, checked anew."""
        return replace(self, **changes)
