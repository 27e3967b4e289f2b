"""Language models as agents: any OpenAI-compatible endpoint, or a local transformers pipeline."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from envrate import _checks
from envrate.agents._action import Action
from envrate.agents._chat_content import SILENCE, content, instructions, is_picture, new_packets, parse_reply
from envrate.task import Task

PROTOCOLS = ("sliding", "cumulative", "interleaved")


#: Makes a model reply to chat messages: {"reply": str | None, "latency_ms": float, ...}.
Ask = Callable[[list[dict[str, Any]]], dict[str, Any]]


@dataclass
class ChatState:
    """What the agent remembers of its episode."""

    seed: int
    turn: int = 0
    num_packets: int = 0
    # Content parts of the packets that may be shown again, and of those since the last poll.
    packets: list[list[dict[str, Any]]] = field(default_factory=list)
    waiting: list[list[dict[str, Any]]] = field(default_factory=list)
    dialogue: list[dict[str, Any]] = field(default_factory=list)  # the interleaved protocol's messages
    last: Action = Action()  # what stands until the next reply: the last estimate where the task tracks, else nothing


@dataclass
class Poller:
    """What every model shares: what it is told and shown, when it is asked, and what its replies mean.

    Args:
        task: the task.
        modality: the renderer, its dict or its kind, as the environment has it.
        protocol: "sliding" shows the last `window` packets at each poll, "cumulative" every packet so far,
            "interleaved" only the new ones, in a conversation that grows by each reply. Names as in InteractionBench.
        poll_every: micro-turns between polls; a poll with nothing new to show is left out.
        window: packets that the sliding protocol shows.
        log: a JSONL file that keeps every reply with its token counts and latency. A run that finds a request
            in it takes the reply and the latency from there, so that an interrupted run goes on where it stopped.
        prompt: a system prompt of your own; None says what the renderer's legend and the task say.
    """

    task: Task
    modality: Any = "symbols"
    protocol: str = "sliding"
    poll_every: int = 1
    window: int = 8
    log: Path | None = None
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Checks the settings and reads the log."""
        from envrate.envs._build import as_renderer

        _checks.choice("protocol", self.protocol, PROTOCOLS)
        _checks.integer("poll_every", self.poll_every, 1, unit="micro-turns")
        _checks.integer("window", self.window, 1, unit="packets")
        self.renderer = as_renderer(self.modality)
        self._told = self.prompt or instructions(self.task, self.renderer.legend(self.task))
        self._known: dict[str, dict[str, Any]] = {}
        if self.log is not None and self.log.exists():
            for line in self.log.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    self._known[entry["request"]] = entry
                except (ValueError, KeyError, TypeError):
                    continue  # a line torn by an interruption: its request is asked again

    @property
    def shows_pictures(self) -> bool:
        """Whether packets are pictures."""
        return is_picture(self.renderer.signal(self.task))

    def start(self, num_envs: int, seed: int) -> ChatState:
        """A fresh memory; raises ValueError for more than one environment."""
        if num_envs != 1:
            raise ValueError(f"num_envs: a chat agent plays 1 environment, got {num_envs}")
        return ChatState(seed)

    def turn(self, observation: dict[str, Any], state: ChatState, ask: Ask) -> tuple[Action, ChatState, int]:
        """Takes an observation in and asks the model where a poll is due; (action, state, time taken in whole ms)."""
        messages = self._poll(state, observation)
        if messages is None:
            return state.last, state, 0
        # Packets are numbered, so no request comes twice in an episode.
        key = hashlib.sha256(json.dumps([state.seed, messages], sort_keys=True).encode()).hexdigest()[:32]
        entry = self._known.get(key)
        if entry is None:
            entry = {"request": key, **ask(messages)}
            self._keep(entry)
        reply = entry["reply"] or ""
        if self.protocol == "interleaved":
            state.dialogue.append({"role": "assistant", "content": reply or SILENCE})
        action = parse_reply(self.task, reply) or state.last
        if self.task.is_tracking:
            state.last = action
        return action, state, math.ceil(entry["latency_ms"])

    def _poll(self, state: ChatState, observation: dict[str, Any]) -> list[dict[str, Any]] | None:
        """The messages of a poll where one is due and there is news."""
        signals, ages = new_packets({name: value[0] for name, value in observation.items()})
        for signal, age in zip(signals, ages, strict=True):
            parts = content(self.task, self.renderer, np.asarray(signal), state.num_packets, age)
            state.num_packets += 1
            state.packets.append(parts)
            state.waiting.append(parts)
        due = state.turn % self.poll_every == 0
        state.turn += 1
        if not due or not state.waiting:
            return None
        system = {"role": "system", "content": self._told}
        if self.protocol == "interleaved":
            state.dialogue.append({"role": "user", "content": [p for parts in state.waiting for p in parts]})
            messages = [system, *state.dialogue]
        else:
            shown = state.packets if self.protocol == "cumulative" else state.packets[-self.window :]
            messages = [system, {"role": "user", "content": [p for parts in shown for p in parts]}]
        if self.protocol != "cumulative":
            del state.packets[: -self.window]
        state.waiting = []
        return messages

    def _keep(self, entry: dict[str, Any]) -> None:
        """Remembers a reply, in the log too where there is one."""
        self._known[entry["request"]] = entry
        if self.log is not None:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


@dataclass
class ChatAgent:
    """A model behind an OpenAI-compatible chat endpoint, for `envrate.live.run`.

    It is called as `agent(observation, state) -> (action, state, compute_ms)`. Retries and their waits lie inside the
    measured time. An endpoint that fails for good counts as silence for that poll and is kept in the log.

    Args:
        base_url: address of the endpoint, up to and including `/v1`.
        model: the model's name there.
        poller: what is shown and when; see `Poller`.
        max_tokens: of a reply.
        timeout_s: of one try.
        max_retries: tries after the first.
        stream: ask for a streamed reply.
        api_key_env: the environment variable that holds the key. Keys are read from the environment only and never
            kept; an endpoint without keys needs none.
    """

    base_url: str
    model: str
    poller: Poller
    max_tokens: int = 16
    timeout_s: float = 30.0
    max_retries: int = 2
    stream: bool = False
    api_key_env: str = "OPENAI_API_KEY"

    def __post_init__(self) -> None:
        """Connects the client."""
        try:
            from openai import OpenAI
        except ImportError as error:
            raise ImportError("ChatAgent needs the openai client: pip install 'envrate[live]'") from error
        self._client = OpenAI(
            base_url=self.base_url,
            api_key=os.environ.get(self.api_key_env) or "none",
            timeout=self.timeout_s,
            max_retries=_checks.integer("max_retries", self.max_retries, 0),
        )

    @property
    def name(self) -> str:
        """Name in traces."""
        return f"{self.model} ({self.poller.protocol})"

    def init(self, num_envs: int, seed: int) -> ChatState:
        """A fresh memory; one environment only."""
        return self.poller.start(num_envs, seed)

    def __call__(self, observation: dict[str, Any], state: ChatState) -> tuple[Action, ChatState, int]:
        """Polls the model where a poll is due; returns its action and the time that it took in ms."""
        return self.poller.turn(observation, state, self._ask)

    def _ask(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        from openai import OpenAIError

        began = time.perf_counter()
        reply, usage, error = None, None, None
        try:
            reply, usage = self._complete(messages)
        except OpenAIError as failure:
            error = f"{type(failure).__name__}: {failure}"[:300]
        latency_ms = (time.perf_counter() - began) * 1000.0
        return {
            "model": self.model,
            "reply": reply,
            "usage": usage,
            "error": error,
            "latency_ms": round(latency_ms, 3),
        }

    def _complete(self, messages: list[dict[str, Any]]) -> tuple[str, dict[str, int] | None]:
        ask: Any = self._client.chat.completions.create
        settings = {"model": self.model, "messages": messages, "max_tokens": self.max_tokens, "temperature": 0.0}
        if not self.stream:
            done = ask(**settings)
            return _text(done.choices and done.choices[0].message.content), _usage(done.usage)
        text, usage = "", None
        for chunk in ask(**settings, stream=True, stream_options={"include_usage": True}):
            if chunk.choices:
                text += _text(chunk.choices[0].delta.content)
            usage = _usage(chunk.usage) or usage
        return text, usage


def _text(value: Any) -> str:
    """The text of a reply; endpoints that answer with something else say nothing."""
    return value if isinstance(value, str) else ""


def _usage(usage: Any) -> dict[str, int] | None:
    if usage is None:
        return None
    return {"prompt_tokens": int(usage.prompt_tokens or 0), "completion_tokens": int(usage.completion_tokens or 0)}


@dataclass
class HFAgent:
    """A local model from the transformers library, for `envrate.live.run`: text, numbers or pictures; no sound.

    Args:
        pipeline: a text-generation or image-text-to-text pipeline, or any callable that takes chat messages and
            returns such a pipeline's output; see `from_pretrained`.
        poller: what is shown and when.
        max_new_tokens: of a reply.
        name: in traces.
    """

    pipeline: Any
    poller: Poller
    max_new_tokens: int = 16
    name: str = "transformers"

    def __post_init__(self) -> None:
        """Refuses sound, for which transformers has no form that its models share."""
        if self.poller.renderer.kind == "audio":
            raise ValueError("poller.modality: HFAgent hears no sound; serve the model and use a ChatAgent")

    @classmethod
    def from_pretrained(cls, model: str, poller: Poller, **options: Any) -> HFAgent:
        """Loads `model` (a local folder or a hub name) as the pipeline that suits the modality."""
        try:
            from transformers import pipeline
        except ImportError as error:
            raise ImportError("HFAgent needs transformers and torch: pip install 'envrate[hf]'") from error
        task = "image-text-to-text" if poller.shows_pictures else "text-generation"
        return cls(pipeline(task, model=model, **options), poller, name=model)

    def init(self, num_envs: int, seed: int) -> ChatState:
        """A fresh memory; one environment only."""
        return self.poller.start(num_envs, seed)

    def __call__(self, observation: dict[str, Any], state: ChatState) -> tuple[Action, ChatState, int]:
        """Polls the model where a poll is due; returns its action and the time that it took in ms."""
        return self.poller.turn(observation, state, self._ask)

    def _ask(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        form = _parts if self.poller.shows_pictures else _flat
        greedy: dict[str, Any] = {"do_sample": False}
        if self.poller.shows_pictures:  # that pipeline takes what is for the generation by itself
            greedy = {"generate_kwargs": greedy}
        shown = [message | {"content": form(message["content"])} for message in messages]
        began = time.perf_counter()
        output = self.pipeline(shown, max_new_tokens=self.max_new_tokens, return_full_text=False, **greedy)
        latency_ms = (time.perf_counter() - began) * 1000.0
        return {"model": self.name, "reply": _generated(output), "latency_ms": round(latency_ms, 3)}


def _flat(content: Any) -> str:
    """Text parts joined, as the chat templates of text models expect."""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def _parts(content: Any) -> list[dict[str, Any]]:
    """Content parts as the chat templates of models with pictures expect."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [{"type": "image", "url": p["image_url"]["url"]} if p["type"] == "image_url" else p for p in content]


def _generated(output: Any) -> str:
    """The text in a pipeline's output: a list of dicts whose `generated_text` is a string or a conversation."""
    first = output[0] if isinstance(output, list) and output else output
    text = first.get("generated_text", "") if isinstance(first, dict) else first
    if isinstance(text, list) and text:
        text = text[-1].get("content", "")
    return _text(text)
