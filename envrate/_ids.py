"""The Gymnasium ids, as a table. Importing this module imports nothing heavy, Gymnasium included."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

#: Preset -> its name in an id.
TASKS = {
    "alert": "Alert",
    "alert-probed": "AlertProbed",
    "watch": "Watch",
    "hold": "Hold",
    "choice8": "Choice8",
    "track": "Track",
    "track3": "Track3",
    "exceed": "Exceed",
}
#: Modality -> its name in an id.
MODALITIES = {"symbols": "Symbols", "audio": "Audio", "video": "Video", "screen": "Screen", "proprio": "Proprio"}

#: Id -> (preset, modality). Every task in every modality.
IDS: dict[str, tuple[str, str]] = {
    f"EnvRate/{task_name}-{name}-v0": (task, modality)
    for task, task_name in TASKS.items()
    for modality, name in MODALITIES.items()
}


def pairs() -> list[tuple[str, str]]:
    """Every (preset, modality) that has an id."""
    return list(IDS.values())


#: The module of Gymnasium that holds the registry.
_REGISTRATION = "gymnasium.envs.registration"


def register() -> None:
    """Registers every id with string entry points, so that no environment is imported before it is made."""
    from gymnasium.envs.registration import register as register_id
    from gymnasium.envs.registration import registry

    for env_id, (task, modality) in IDS.items():
        if env_id not in registry:
            register_id(
                id=env_id,
                entry_point="envrate.envs:EnvRateEnv",
                vector_entry_point="envrate.envs:EnvRateVectorEnv",
                kwargs={"task": task, "modality": modality},
            )


class _AfterGymnasium(MetaPathFinder):
    """Registers the ids as soon as Gymnasium's registry exists.

    `import envrate` must not cost an import of Gymnasium, which the command line would pay for at every call.
    """

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The ordinary spec of the registry's module, whose loader registers the ids when it is done."""
        if fullname != _REGISTRATION:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            sys.modules[_REGISTRATION] = module
            register()

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def register_with_gymnasium() -> None:
    """Registers now if Gymnasium is imported, else when it will be."""
    if _REGISTRATION in sys.modules:
        register()
    elif not any(isinstance(finder, _AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterGymnasium())
