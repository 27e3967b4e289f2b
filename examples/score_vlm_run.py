"""Scores video-model runs that lie on disk: accuracy, bits per item, and where the two disagree.

    python examples/score_vlm_run.py outputs/model_a outputs/model_b --seconds 8

Any run that `envrate score` recognises will do: EvalScope, lmms-eval or VLMEvalKit on TVBench, InteractionBench (with
`--data`), or an installed adapter's.
"""

import argparse
import sys

from envrate import bench_adapters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--data", help="the benchmark's data folder")
    parser.add_argument("--seconds", type=float, help="seconds of an item's own clock")
    given = parser.parse_args()
    options = {name: value for name in ("data", "seconds") if (value := getattr(given, name)) is not None}

    scored = []
    for path in given.runs:
        for found in bench_adapters.runs(path):
            print(f"{found.path}: {found.recognition.description}")
            scored.append(bench_adapters.score_run(found, str(found.path), **options))

    print(f"\n{'run':40} {'own score':>9} {'bits/item':>9}   95 % interval      bits/s within the horizon")
    for run in scored:
        rate, last = run.rate, run.frontier.at(run.trace.header.horizon_ms)
        own = "-" if run.accuracy is None else f"{run.accuracy:.4f}"
        if rate is None:
            print(f"{run.name[-40:]:40} {own:>9} {'-':>9}   {'':18} {last.credited:.4f} at {last.latency_ms} ms")
        elif rate.reason:
            print(f"{run.name[-40:]:40} {own:>9} {'-':>9}   withheld: {rate.reason}")
        else:
            interval = f"{rate.low:.4f} ... {rate.high:.4f}"
            speed = f"{last.credited:.4f} at {last.latency_ms} ms" if run.is_timed else "no latency was measured"
            print(f"{run.name[-40:]:40} {own:>9} {rate.bits:9.4f}   {interval:18} {speed}")

    rated = [run for run in scored if run.rate is not None]
    names, own_scores, rates = [r.name for r in rated], [r.accuracy for r in rated], [r.rate for r in rated]
    for pair in bench_adapters.disagreements(names, own_scores, rates):
        print(f"order differs: {pair}")
    for run in scored:
        for note in run.notes:
            print(f"note on {run.name}: {note}")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"score_vlm_run: {error}")
