"""Draws docs/time.svg from a run of the environment itself: python docs/time_picture.py"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

import envrate as er

TICK, TURN, COMPUTE, END = 500, 200, 150, 2200
LINK = er.channels.Link(delay_ms=130, jitter=er.channels.Uniform(0, 300))

task = er.Task(
    latent=er.latents.MarkovChain(((0.5, 0.5), (0.5, 0.5))),
    response=(0, 1),
    tick_ms=TICK,
    micro_turn_ms=TURN,
    horizon_ms=1600,
    reply="named",
)
trace = er.rollout(task, "reactive", link=LINK, num_envs=1, num_ticks=4, seed=13, compute_ms=COMPUTE)
ticks, responses = trace.ticks, trace.responses

matplotlib.rcParams["svg.hashsalt"] = "envrate"
figure, axes = plt.subplots(figsize=(10, 4.2))
lanes = {"latent": 3.0, "link": 2.0, "observations": 1.0, "responses": 0.0}
for k in range(END // TURN + 1):
    axes.axvline(k * TURN, color="0.88", linewidth=1, zorder=0)
    axes.plot(k * TURN, lanes["observations"], "o", color="0.45", markersize=4)
    axes.annotate(f"k={k}", (k * TURN, lanes["observations"] + 0.13), ha="center", fontsize=7, color="0.35")
for i in range(END // TICK + 1):
    onset, required = i * TICK, int(ticks["required"][i])
    colour = "tab:orange" if required else "tab:blue"
    axes.fill_between([onset, min(onset + TICK, END)], 2.85, 3.15, color=colour, alpha=0.35 if required else 0.15)
    axes.plot([onset, onset], [2.8, 3.2], color="black", linewidth=1.2)
    axes.annotate(f"tick {i}: {'respond' if required else 'null'}", (onset + 12, 3.24), fontsize=8)
    seen = int(ticks["delivered_ms"][i])
    if 0 <= seen <= END:
        axes.annotate(
            "", (seen, 1.05), (onset, 2.85), arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": 0, "shrinkB": 2}
        )
for tick, time in zip(responses["tick"], responses["time_ms"]):
    if time > END or tick < 0:
        continue
    chosen, onset = int(time) - COMPUTE, int(tick) * TICK
    axes.annotate(
        "", (time, 0.05), (chosen, 0.95), arrowprops={"arrowstyle": "->", "color": "tab:green", "shrinkA": 0, "shrinkB": 1}
    )
    axes.plot(time, 0, "s", color="tab:green", markersize=6)
    level = -0.35 - 0.28 * (int(tick) % 2)
    axes.annotate("", (time, level), (onset, level), arrowprops={"arrowstyle": "<->", "color": "0.3"})
    axes.annotate(f"latency {time - onset} ms", ((time + onset) / 2, level - 0.2), ha="center", fontsize=8)
axes.set_yticks(list(lanes.values()), ["ticks of z", "link", "observations\n(every micro-turn)", "responses\ntake effect"])
axes.set_xticks(np.arange(0, END + 1, TICK))
axes.set_xlabel("ms since reset")
axes.set_xlim(-20, END)
axes.set_ylim(-1.0, 3.55)
for side in ("top", "right", "left"):
    axes.spines[side].set_visible(False)
axes.tick_params(left=False)
axes.set_title(
    f"tick {TICK} ms, micro-turn {TURN} ms, link 130 ms + 0 ... 300 ms, compute {COMPUTE} ms", fontsize=9, loc="left"
)
figure.tight_layout()
figure.savefig(Path(__file__).with_name("time.svg"), metadata={"Date": None})
