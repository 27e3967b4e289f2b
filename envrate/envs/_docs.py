"""The page of an id: what its environment shows, takes, pays and demands, under fixed headings."""

from __future__ import annotations

from envrate.envs._core import Core

VERSION_HISTORY = "v0: first version."


def page(core: Core) -> str:
    """The docstring of an environment."""
    task, clock, spec = core.task, core.clock, core.signal
    law = type(task.latent).__name__
    if task.is_tracking:
        wanted = f"its {task.latent.num_outputs} values themselves, at squared error"
        action = f"`Box` of {task.latent.num_outputs} numbers: the values tracked, in effect until the next action."
    else:
        count = task.num_symbols - 1
        wanted = f"{count} response{'s' if count > 1 else ''} and null, by the table {task.table}"
        parts = [f"a symbol 0 ... {task.num_symbols - 1}, 0 is silence"]
        if task.reply == "named":
            parts.append(f"the tick it names, 0 ... {task.ticks_nameable - 1} ticks before the current one")
        if task.probes is not None:
            parts.append(f"the answer to a probe, 1 ... {task.num_answers}, 0 is none")
        kind = "MultiDiscrete" if len(parts) > 1 else "Discrete"
        action = f"`{kind}`: {'; '.join(parts)}."
        if task.reply == "newest":
            action += " A response answers the newest tick seen."
    if clock.frame_ms is None:
        sends = f"A packet of {core.renderer.packet_bits(task)} bits at each tick's onset."
    else:
        sends = f"Frames of {clock.frame_ms} ms, {core.renderer.packet_bits(task)} bits each, sent when captured."
    legend = core.renderer.legend(task)
    what = "state" if hasattr(task.latent, "num_states") else "value"
    first = 0 if what == "state" else 1
    shows = "\n".join(f"- {what} {k}: {meaning}" for k, meaning in enumerate(legend.meanings, first))
    if task.probes is not None:
        shows += f"\n- a question: {legend.question}"
    probes = "" if task.probes is None else (
        f" A tick is probed at rate {task.probes.rate}, {task.probes.after_ms} ms after its onset; answers count for "
        f"{task.probes.deadline_ms} ms."
    )
    stays = ", but the last picture stays" if spec.holds else ""
    cost = "the squared error of the value in effect" if task.is_tracking else "the severity of the outcome"
    return f"""{task.name} in {core.renderer.kind}.

## Latent
{law}, one move per tick of {task.tick_ms} ms. Required: {wanted}.

## Observation
A dict. `signal` {(core.window, *spec.shape)} {spec.dtype}: the newest packets that arrived in this micro-turn, newest
last; {spec.empty:g} in empty slots{stays}. `age_ms` ({core.window},): since each
packet's capture ended, -1 in empty slots. `fresh`: packets that arrived in this micro-turn.{probes}

A packet is {legend.packet}.
{shows}

## Action
{action}

## Reward
Minus {cost} of the ticks resolved in this micro-turn ({task.micro_turn_ms} ms), at the horizon of
{task.horizon_ms} ms. A tick resolves when first answered in time, or when the horizon has passed.

## Link
{sends} The link is the argument `link`; `reset(options={{"link": ...}})` changes it.

## Episode end
Truncated after {clock.num_steps} micro-turns, which score {clock.num_ticks} ticks; never terminated.

## Demand
`Task.demand()` in bits per second: the rate-distortion function of the required responses, whatever the modality.

## Version history
{VERSION_HISTORY}
"""
