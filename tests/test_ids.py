"""Ids are registered by `import envrate` alone, which imports nothing heavy, in either order with Gymnasium."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = """
import sys
import envrate
heavy = [name for name in ("jax", "gymnasium", "numba", "mujoco", "matplotlib", "scipy.signal") if name in sys.modules]
assert not heavy, heavy
"""
BEFORE = "import envrate; import gymnasium as gym"
AFTER = "import gymnasium as gym; import envrate; import envrate"
CHECK = """
ids = [name for name in gym.registry if name.startswith("EnvRate/")]
assert set(envrate._ids.IDS) == set(ids) and "EnvRate/Alert-Symbols-v0" in ids
assert "jax" not in sys.modules
spec = gym.spec("EnvRate/Watch-Symbols-v0")
assert spec.entry_point == "envrate.envs:EnvRateEnv" and spec.max_episode_steps is None
spec.to_json()
"""


@pytest.mark.parametrize("program", [LIGHT, f"import sys\n{BEFORE}\n{CHECK}", f"import sys\n{AFTER}\n{CHECK}"])
def test_import_registers_and_stays_light(program: str) -> None:
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
