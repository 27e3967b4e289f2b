"""Frozen dataclasses with a `kind` tag to JSON and back.

Laws, links, jitters, severities, probes and tasks are all of this form, so that a Gymnasium spec becomes JSON and
a trace can carry its task. A class joins a family with `@tagged("law", "markov")`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_KINDS: dict[tuple[str, str], type] = {}
_TAGS: dict[type, tuple[str, str]] = {}


def tagged(family: str, kind: str) -> Callable[[type[T]], type[T]]:
    """Registers a frozen dataclass as `kind` of `family`."""

    def register(cls: type[T]) -> type[T]:
        _KINDS[family, kind] = cls
        _TAGS[cls] = (family, kind)
        return cls

    return register


def to_dict(value: Any) -> Any:
    """JSON-ready form: tagged dataclasses become objects with a `kind`; fields that hold None are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value) not in _TAGS:
            raise TypeError(f"{type(value).__name__} has no kind tag")
        body = {field.name: to_dict(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"kind": _TAGS[type(value)][1]} | {key: item for key, item in body.items() if item is not None}
    if isinstance(value, (tuple, list)):
        return [to_dict(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_dict(item) for key, item in value.items()}
    return value


def from_dict(family: str, value: Any, name: str | None = None) -> Any:
    """The object of `family` that `value` describes; an object of that family passes through."""
    name = name or family
    if type(value) in _TAGS and _TAGS[type(value)][0] == family:
        return value
    kinds = sorted(kind for member, kind in _KINDS if member == family)
    if not isinstance(value, dict):
        raise ValueError(
            f"{name}: expected a {family} or its dict with a 'kind' of {', '.join(kinds)}, got {value!r:.200}"
        )
    fields = dict(value)
    kind = fields.pop("kind", kinds[0] if len(kinds) == 1 else None)
    if (family, kind) not in _KINDS:
        raise ValueError(f"{name}.kind: expected one of {', '.join(kinds)}, got {kind!r}")
    cls = _KINDS[family, kind]
    known = {field.name for field in dataclasses.fields(cls)}
    unknown = sorted(set(fields) - known)
    if unknown:
        raise ValueError(f"{name}: unknown key {unknown[0]!r}; a {kind} takes {', '.join(sorted(known))}")
    try:
        return cls(**fields)
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from error
