"""Our own traces, so that `load` and `envrate score` take them like any other run."""

from __future__ import annotations

from pathlib import Path

from envrate import _trace_io
from envrate.bench_adapters._adapter import Recognition
from envrate.trace import Trace

#: How much of a file is read to recognise it; a trace's header line begins with its format's name.
HEAD_BYTES = 4096


class OwnTrace:
    """A file that `Trace.save` or a `TraceWriter` wrote."""

    name = "trace"

    def recognise(self, path: Path) -> Recognition | None:
        """A `.jsonl` whose first line is a trace's header, or a `.parquet` of a trace's ticks."""
        if not path.is_file():
            return None
        try:
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
        except OSError:
            return None
        if path.suffix == ".parquet" and head.startswith(b"PAR1"):
            if path.name.endswith(".responses.parquet"):
                ticks = path.name.removesuffix(".responses.parquet") + ".parquet"
                return Recognition("trace", "responses of an EnvRate trace", 0.9, refusal=f"score {ticks} beside it")
            return Recognition("trace", "EnvRate trace (Parquet)", 0.9)
        compact = b"".join(head.split())
        if compact.startswith(b'{"header":{"format":"' + _trace_io.FORMAT.encode() + b'"'):
            return Recognition("trace", "EnvRate trace (JSONL)")
        return None

    def load(self, path: Path, *, strict: bool = False) -> Trace:
        """The trace; see `Trace.load`."""
        return _trace_io.load(path, strict=strict)
