"""The adapter: which of the four formats a path holds, and the calls into its reader."""

from __future__ import annotations

from pathlib import Path

from envrate.bench_adapters._adapter import Recognition, ScoreTable
from envrate.bench_adapters.tvbench import _dataset, _evalscope, _evalscope_files, _lmms_eval, _notebook, _vlmevalkit
from envrate.bench_adapters.tvbench._items import Run
from envrate.bench_adapters.tvbench._logprobs import InformationBound, information_bound
from envrate.bench_adapters.tvbench._scores import score_table
from envrate.bench_adapters.tvbench._trace import to_trace
from envrate.trace import Trace

_RECOGNISERS = {
    "evalscope": _evalscope_files.recognise,
    "tvbench-notebook": _notebook.recognise,
    "lmms-eval": _lmms_eval.recognise,
    "vlmevalkit": _vlmevalkit.recognise,
}
_READERS = {
    "evalscope": _evalscope.read,
    "tvbench-notebook": _notebook.read,
    "lmms-eval": _lmms_eval.read,
    "vlmevalkit": _vlmevalkit.read,
}


class TVBench:
    """Runs of TVBench by EvalScope, the benchmark's own notebook, lmms-eval or VLMEvalKit.

    Each question is an episode, each reply a tick, each number of options a stratum of exchangeable symbols. A rate
    per second divides by the item's own clock (`seconds`), never by the time that the service took.
    """

    name = "tvbench"
    kinds = tuple(_READERS)

    def recognise(self, path: Path) -> Recognition | None:
        """The format of `path`, or None."""
        for look in _RECOGNISERS.values():
            try:
                found = look(path)
            except OSError:
                continue
            if found is not None:
                return found
        return None

    def load(
        self,
        path: Path,
        *,
        kind: str | None = None,
        data: str | Path | None = None,
        seconds: str | float | None = None,
    ) -> Trace:
        """The run as a trace.

        Args:
            path: see the formats of the class.
            kind: the format; None recognises it.
            data: the data set's folder, for options, answers, clip lengths and missing items that the files lack.
            seconds: an item's own clock: "clip", or a number of seconds; None takes clip lengths where every item has
                one, else rates are per item.

        Raises:
            ValueError: another format, no row that can be read, no clip lengths for `seconds="clip"`.
        """
        return to_trace(self.read(path, kind=kind, data=data), seconds=seconds)

    def scores(self, path: Path, *, kind: str | None = None, data: str | Path | None = None) -> ScoreTable:
        """Micro and macro accuracy as the producing program counts them, from the rows; options as `load`."""
        return score_table(self.read(path, kind=kind, data=data))

    def information(
        self, path: Path, *, kind: str | None = None, data: str | Path | None = None
    ) -> InformationBound:
        """Bits per item in the model's option probabilities, where they were logged; options as `load`."""
        return information_bound(self.read(path, kind=kind, data=data).items)

    def read(self, path: Path, *, kind: str | None = None, data: str | Path | None = None) -> Run:
        """The replies themselves, before they become a trace; options as `load`."""
        path = Path(path)
        if kind is None:
            found = self.recognise(path)
            if found is None:
                raise ValueError(f"path: {str(path)!r} is none of the formats {', '.join(self.kinds)}")
            kind = found.kind
        if kind not in _READERS:
            raise ValueError(f"kind: expected one of {', '.join(self.kinds)}, got {kind!r}")
        questions = {} if data is None else _dataset.read(Path(data))
        return _READERS[kind](path, questions)
