"""Links between the world and the agent."""

from envrate.channels._link import (
    Constant,
    Exponential,
    GilbertElliott,
    Jitter,
    Link,
    TwoPoint,
    Uniform,
    as_link,
    get,
)

__all__ = ["Constant", "Exponential", "GilbertElliott", "Jitter", "Link", "TwoPoint", "Uniform", "as_link", "get"]
