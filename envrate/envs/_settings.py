"""What both Gymnasium faces have in common: their settings, the link of the moment, options of `reset`."""

from __future__ import annotations

from typing import Any

import numpy as np

from envrate.channels import Link, _kernel, as_link
from envrate.envs import _build
from envrate.envs._core import Core
from envrate.envs._stepper import Stepper, stepper

#: Scored ticks of an episode where nothing else is said.
NUM_TICKS = 200
OPTIONS = ("link",)


class Settings:
    """Core, link and compiled functions behind one environment object."""

    def __init__(
        self,
        task: Any,
        modality: Any,
        link: Any,
        *,
        num_ticks: int,
        compute_ms: int,
        batch: tuple[int, ...],
        recording: bool,
        max_steps: int | None = None,
    ) -> None:
        """Builds the core; nothing is compiled before the first reset."""
        self._what = (_build.as_task(task), _build.as_renderer(modality))
        self._how = {"num_ticks": num_ticks, "compute_ms": compute_ms, "max_steps": max_steps}
        self._batch, self._recording = batch, recording
        self.link = as_link(link)
        self.core = self._core(self.link)
        self.vector = _kernel.pack(self.core.params)
        self._stepper: Stepper | None = None

    def _core(self, link: Link) -> Core:
        task, renderer = self._what
        return _build.core(task, renderer, link, **self._how)  # type: ignore[arg-type]

    @property
    def stepper(self) -> Stepper:
        """The compiled functions."""
        if self._stepper is None:
            self._stepper = stepper(self.core, self._batch, self._recording)
        return self._stepper

    def take_options(self, options: dict[str, Any] | None) -> None:
        """Applies the options of a reset; the link stays until another is given.

        A link only changes numbers. Another core, and a compilation, is needed where a link keeps packets for longer
        or drops the oldest of a full buffer and the present core does not.
        """
        unknown = sorted(set(options or {}) - set(OPTIONS))
        if unknown:
            raise ValueError(f"options: unknown key {unknown[0]!r}; expected {', '.join(OPTIONS)}")
        if not options or "link" not in options:
            return
        self.link = as_link(options["link"])
        params = self.core.link_params(self.link)
        if int(params.max_age_ms) > self.core.age_ms or (params.oldest and not self.core.drops_oldest):
            self.core = self._core(self.link)
            self._stepper = None
            params = self.core.params
        if self.core.task.is_tracking and self.link.uplink_ms > self.core.link.uplink_ms:
            self.core, self._stepper = self._core(self.link), None
        self.vector = _kernel.pack(params)


def fresh_seed() -> int:
    """A seed from the system's entropy, small enough for any JSON reader."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(11))
