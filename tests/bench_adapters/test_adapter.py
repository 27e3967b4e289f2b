"""Recognition, discovery through entry points, options, and what is said where none fits."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envrate import bench_adapters, tasks
from envrate.bench_adapters import Adapter, Recognition, ScoresItself, ScoreTable, _discovery
from envrate.trace import Header, Trace

sys.path.insert(0, str(Path(__file__).parent / "tvbench"))
from tvbench_writers import WRITERS, questions

MADE = questions(30)


def _own_trace(folder: Path) -> Path:
    task = tasks.get("alert")
    ticks = {"episode": np.zeros(40, int), "tick": np.arange(40), "onset_ms": 500 * np.arange(40),
             "required": np.arange(40) % 2}
    return Trace(Header.for_task(task), ticks, {}).save(folder / "run.jsonl")


def test_built_in_adapters_are_found_by_their_entry_points() -> None:
    found = bench_adapters.adapters()
    assert {"trace", "interactionbench", "tvbench"} <= set(found)
    assert all(isinstance(adapter, Adapter) for adapter in found.values())
    assert isinstance(found["tvbench"], ScoresItself)


def test_our_own_traces_are_runs_too(tmp_path: Path) -> None:
    path = _own_trace(tmp_path)
    assert bench_adapters.recognise(path).recognition.description == "EnvRate trace (JSONL)"
    assert len(bench_adapters.load(path)) == 40
    assert bench_adapters.scores(path) is None


def test_our_own_parquet_traces(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = Trace.load(_own_trace(tmp_path)).save(tmp_path / "run.parquet")
    assert len(bench_adapters.load(path)) == 40
    with pytest.raises(ValueError, match="run.parquet beside it"):
        bench_adapters.load(tmp_path / "run.responses.parquet")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "absent", "nothing at"),
        (lambda folder: folder, "no run that one of the adapters"),
        (lambda folder: _touch(folder / "x.txt", b"hello"), "no run that one of the adapters"),
        (lambda folder: _touch(folder / "grade.json", b"{}"), "another project"),
    ],
)
def test_what_is_no_run_is_refused_in_one_sentence(make: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        bench_adapters.load(make(tmp_path))
    assert "\n" not in str(caught.value)


def _touch(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_kind_names_an_adapter_or_a_format(tmp_path: Path) -> None:
    path = WRITERS["evalscope"](tmp_path, MADE, np.arange(30))
    assert len(bench_adapters.load(path, "tvbench")) == len(bench_adapters.load(path, "evalscope")) == 30
    with pytest.raises(ValueError, match="kind: expected one of .*evalscope.*, got 'nonsense'"):
        bench_adapters.load(path, "nonsense")
    with pytest.raises(ValueError, match="expected one lmms-eval run"):
        bench_adapters.load(path, "lmms-eval")


def test_an_option_the_adapter_lacks_is_refused_by_name(tmp_path: Path) -> None:
    path = WRITERS["evalscope"](tmp_path, MADE, np.arange(30))
    with pytest.raises(ValueError, match="colour: the adapter tvbench has no such option; it takes data, seconds"):
        bench_adapters.load(path, colour="red")
    # Only `load` has seconds: the same options serve both calls.
    assert bench_adapters.scores(path, seconds=2.0) is not None
    with pytest.raises(ValueError, match="colour"):
        bench_adapters.scores(path, colour="red")


class _Stranger:
    """A stranger's adapter, as docs/adapters.md has it, with faults on demand."""

    def __init__(self, name: str = "stranger", confidence: float = 1.0, fault: Exception | None = None) -> None:
        self.name, self.confidence, self.fault = name, confidence, fault

    def recognise(self, path: Path) -> Recognition | None:
        if self.fault is not None:
            raise self.fault
        return Recognition(self.name, "a stranger's run", self.confidence) if path.suffix == ".run" else None

    def load(self, path: Path) -> Trace:
        return Trace.load(_own_trace(path.parent))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Installs adapters for one test as entry points."""

    def install(*adapters: Any) -> None:
        class Point:
            def __init__(self, adapter: Any) -> None:
                self.name = self.value = getattr(adapter, "name", None) or "broken"
                self.adapter = adapter

            def load(self) -> Any:
                if isinstance(self.adapter, Exception):
                    raise self.adapter
                return self.adapter

        real = importlib.metadata.entry_points(group=_discovery.GROUP)
        monkeypatch.setattr(_discovery, "entry_points", lambda group: [*real, *map(Point, adapters)])
        _discovery._loaded.cache_clear()

    yield install
    monkeypatch.undo()
    _discovery._loaded.cache_clear()


def test_an_installed_adapter_joins(installed: Any, tmp_path: Path) -> None:
    installed(_Stranger())
    assert len(bench_adapters.load(_touch(tmp_path / "a.run", b"x"))) == 40


def test_the_surest_adapter_gets_the_path_and_a_tie_is_the_callers_choice(installed: Any, tmp_path: Path) -> None:
    path = _touch(tmp_path / "a.run", b"x")
    installed(_Stranger("one", 0.5), _Stranger("two", 0.9))
    assert bench_adapters.recognise(path).adapter.name == "two"
    installed(_Stranger("one"), _Stranger("two"))
    with pytest.raises(ValueError, match="could be one or two; choose one with kind"):
        bench_adapters.recognise(path)
    assert bench_adapters.recognise(path, "one").adapter.name == "one"


def test_a_broken_adapter_does_not_take_the_others_down(installed: Any, tmp_path: Path) -> None:
    installed(ImportError("no module named x"), _Stranger("faulty", fault=KeyError("k")), object(), _Stranger())
    assert len(bench_adapters.load(_touch(tmp_path / "a.run", b"x"))) == 40
    with pytest.raises(ValueError, match="the adapter broken failed: .*; the adapter faulty failed: KeyError"):
        bench_adapters.load(_touch(tmp_path / "a.txt", b"x"))


def test_tables_check_their_rows() -> None:
    with pytest.raises(ValueError, match="expected 2 cells"):
        ScoreTable("t", ("a", "b"), (("x",),))
    with pytest.raises(ValueError, match="confidence"):
        Recognition("k", "words", 0.0)


def test_scoring_never_imports_jax(tmp_path: Path) -> None:
    path = WRITERS["evalscope"](tmp_path, MADE, np.arange(30))
    code = (
        "import sys\nfrom envrate import bench_adapters\n"
        f"run = bench_adapters.score_run(bench_adapters.runs({str(path)!r})[0])\n"
        "assert run.rate.bits > 0 and run.accuracy > 0\n"
        "sys.exit('jax' in sys.modules or 'mujoco' in sys.modules or 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


DOCS = Path(__file__).parents[2] / "docs" / "adapters.md"


def test_the_template_in_the_documentation_works_and_conforms() -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 55  # "in 50 lines", docstring aside
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(DOCS), "exec"), names)
    names["test_quiz_conforms"]()
