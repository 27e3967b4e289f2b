"""The link between world and agent, as plain numbers. Its JAX kernel sits in `_kernel.py`."""

from __future__ import annotations

from dataclasses import dataclass

from envrate import _checks
from envrate._spec import from_dict, tagged

#: Bandwidths below this would not move a bit within the clock's range.
MIN_BANDWIDTH_BPS = 1e-3


@tagged("jitter", "constant")
@dataclass(frozen=True)
class Constant:
    """The same extra delay for each packet."""

    value_ms: int = 0

    def __post_init__(self) -> None:
        """Checks the delay."""
        object.__setattr__(self, "value_ms", _checks.integer("jitter.value_ms", self.value_ms, 0, unit="ms"))


@tagged("jitter", "uniform")
@dataclass(frozen=True)
class Uniform:
    """Extra delay drawn uniformly from the whole milliseconds low_ms ... high_ms, both included."""

    low_ms: int
    high_ms: int

    def __post_init__(self) -> None:
        """Checks the range."""
        object.__setattr__(self, "low_ms", _checks.integer("jitter.low_ms", self.low_ms, 0, unit="ms"))
        object.__setattr__(self, "high_ms", _checks.integer("jitter.high_ms", self.high_ms, self.low_ms, unit="ms"))


@tagged("jitter", "two-point")
@dataclass(frozen=True)
class TwoPoint:
    """Extra delay high_ms with probability p_high, else low_ms."""

    low_ms: int
    high_ms: int
    p_high: float = 0.5

    def __post_init__(self) -> None:
        """Checks the two points and the probability."""
        object.__setattr__(self, "low_ms", _checks.integer("jitter.low_ms", self.low_ms, 0, unit="ms"))
        object.__setattr__(self, "high_ms", _checks.integer("jitter.high_ms", self.high_ms, self.low_ms, unit="ms"))
        object.__setattr__(self, "p_high", _checks.number("jitter.p_high", self.p_high, 0.0, 1.0))


@tagged("jitter", "exponential")
@dataclass(frozen=True)
class Exponential:
    """Exponential extra delay with the given mean, rounded down to a whole millisecond."""

    mean_ms: float

    def __post_init__(self) -> None:
        """Checks the mean."""
        object.__setattr__(self, "mean_ms", _checks.number("jitter.mean_ms", self.mean_ms, 0.0, 1e6, open_low=True))


@tagged("loss", "gilbert-elliott")
@dataclass(frozen=True)
class GilbertElliott:
    """Bursty loss: a two-state chain that moves once per packet sent, with a loss probability in each state.

    Source: E. N. Gilbert, "Capacity of a burst-noise channel", BSTJ 1960; E. O. Elliott, BSTJ 1963.
    """

    p_good_to_bad: float
    p_bad_to_good: float
    loss_good: float = 0.0
    loss_bad: float = 1.0

    def __post_init__(self) -> None:
        """Checks the four probabilities."""
        for name in ("p_good_to_bad", "p_bad_to_good", "loss_good", "loss_bad"):
            object.__setattr__(self, name, _checks.number(f"loss.{name}", getattr(self, name), 0.0, 1.0))
        if self.p_good_to_bad + self.p_bad_to_good == 0:
            raise ValueError("loss: expected p_good_to_bad or p_bad_to_good above 0, got a chain that never moves")


Jitter = Constant | Uniform | TwoPoint | Exponential


@tagged("link", "link")
@dataclass(frozen=True)
class Link:
    """A first-in first-out link with bandwidth, delay, jitter, loss and a finite buffer.

    departure_i = max(sent_i, departure_{i-1}) + bits_i / bandwidth and
    arrival_i = max(arrival_{i-1}, departure_i + delay + jitter_i); see docs/time.md.

    Args:
        bandwidth_bps: bits per second; None is infinitely fast.
        delay_ms: propagation delay.
        jitter: law of the extra delay, or its dict.
        loss: probability that a packet is lost, iid, or a `GilbertElliott` chain. A lost packet still used bandwidth.
        buffer_bits: bits that may wait, the rest of the packet in service included; None is unbounded.
        drop: which packet goes when the buffer is full.
        max_age_ms: a packet that would be seen later than this is dropped and counted; None is horizon + 1000.
        uplink_ms: time from the agent's action to its effect.
    """

    bandwidth_bps: float | None = None
    delay_ms: int = 0
    jitter: Jitter = Constant(0)
    loss: float | GilbertElliott = 0.0
    buffer_bits: int | None = None
    drop: str = "newest"
    max_age_ms: int | None = None
    uplink_ms: int = 0

    def __post_init__(self) -> None:
        """Checks every field; dicts of a jitter or a loss become their objects."""
        set_field = object.__setattr__
        if self.bandwidth_bps is not None:
            set_field(self, "bandwidth_bps", _checks.number("bandwidth_bps", self.bandwidth_bps, MIN_BANDWIDTH_BPS))
        set_field(self, "delay_ms", _checks.integer("delay_ms", self.delay_ms, 0, 10**6, "ms"))
        set_field(self, "jitter", from_dict("jitter", self.jitter))
        if isinstance(self.loss, (int, float)):
            set_field(self, "loss", _checks.number("loss", self.loss, 0.0, 1.0))
        else:
            set_field(self, "loss", from_dict("loss", self.loss))
        if self.buffer_bits is not None:
            set_field(self, "buffer_bits", _checks.integer("buffer_bits", self.buffer_bits, 0, unit="bits"))
        _checks.choice("drop", self.drop, ("newest", "oldest"))
        if self.max_age_ms is not None:
            set_field(self, "max_age_ms", _checks.integer("max_age_ms", self.max_age_ms, 1, 10**6, "ms"))
        set_field(self, "uplink_ms", _checks.integer("uplink_ms", self.uplink_ms, 0, 10**6, "ms"))


#: Standard links by name. Figures are round numbers typical of each medium; "worked" is the worked example's.
STANDARD: dict[str, Link] = {
    "ideal": Link(),
    "lan": Link(bandwidth_bps=1e9, delay_ms=1),
    "wifi": Link(bandwidth_bps=5e7, delay_ms=5, jitter=Exponential(5.0), loss=0.005),
    "4g": Link(bandwidth_bps=1e7, delay_ms=40, jitter=Exponential(20.0), loss=GilbertElliott(0.01, 0.3)),
    "satellite": Link(bandwidth_bps=2e6, delay_ms=300, jitter=Uniform(0, 30), loss=0.01),
    "worked": Link(delay_ms=300, jitter=TwoPoint(0, 300, p_high=0.4)),
}


def get(name: str) -> Link:
    """The standard link of that name: ideal, lan, wifi, 4g, satellite or worked (the worked example)."""
    return STANDARD[_checks.choice("link", name, STANDARD)]


def as_link(value: Link | dict[str, object] | str | None) -> Link:
    """A link from a `Link`, its dict, a standard name, or None (ideal)."""
    if value is None:
        return STANDARD["ideal"]
    return get(value) if isinstance(value, str) else from_dict("link", value)
