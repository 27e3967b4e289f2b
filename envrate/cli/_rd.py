"""`envrate rd`: rate-distortion functions, entropy rates and estimates from inline numbers or files."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envrate.cli._app import app, emit_json, only_json

if TYPE_CHECKING:
    from envrate.rd import Bracket

rd_app = typer.Typer()
app.add_typer(rd_app, name="rd")

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Write a picture of the rates here.")]
Levels = Annotated[str, typer.Option("--D", "-D", help="Distortion allowed; several with commas.")]
Pmf = Annotated[str, typer.Option("--pmf", help='Law of a letter: "0.7,0.3", or a .csv or .json file.')]
Distortion = Annotated[
    str, typer.Option("--distortion", help='"0,1;1,0", a file, or one of hamming, squared, absolute.')
]
Transition = Annotated[str, typer.Option("--transition", help='Rows that sum to 1: "0.9,0.1;0.1,0.9", or a file.')]
Response = Annotated[str | None, typer.Option("--response", help="Letter of each state, 0, 1, ...; default: its own.")]
CurveLevels = Annotated[str | None, typer.Option("--D", "-D", help="Distortion; default: the whole curve.")]
CurvePoints = Annotated[int, typer.Option("--num", help="Points of the curve.")]
Tol = Annotated[float, typer.Option("--tol", help="Width of the bracket, bits.")]

PER_LETTER = "bits/letter"


def _chain(transition: str, response: str | None) -> tuple[Any, Any]:
    """The chain's matrix, and the letter of each state: its own by default."""
    import numpy as np

    from envrate.cli._rd_input import integers, matrix

    chain = matrix("transition", transition)
    return chain, np.arange(len(chain)) if response is None else integers("response", response)


def _levels(text: str) -> list[float]:
    from envrate.cli._rd_input import vector

    return [float(d) for d in vector("D", text)]


def _emit(title: str, unit: str, rows: list[dict[str, Any]], as_json: bool, plot: Path | None, **more: Any) -> None:
    """Prints rows as a table or a JSON document, and draws rate against D where a picture is asked for."""
    if plot is not None:
        _draw(title, unit, rows, plot)
    if as_json:
        points = [{name: _finite(value) for name, value in row.items()} for row in rows]
        emit_json({"title": title, "unit": unit, "points": points} | more)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{title} ({unit})")
    for name in rows[0]:
        table.add_column(name)
    for row in rows:
        table.add_row(*(f"{value:.9g}" if isinstance(value, float) else str(value) for value in row.values()))
    Console().print(table)


def _finite(value: Any) -> Any:
    """Infinity is not JSON: it becomes null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _draw(title: str, unit: str, rows: list[dict[str, Any]], path: Path) -> None:
    if "D" not in rows[0]:
        raise ValueError("--plot: only rates against a distortion can be drawn")
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.add_subplot()
    rows = sorted(rows, key=lambda row: float(row["D"]))
    d = [row["D"] for row in rows]
    marker = "o" if len(rows) < 20 else ""
    axes.fill_between(d, [row["lower"] for row in rows], [row["upper"] for row in rows], alpha=0.3, linewidth=0)
    axes.plot(d, [0.5 * (row["lower"] + row["upper"]) for row in rows], marker=marker, label="R(D)")
    extra = [name for name in rows[0] if name in ("closed form", "causal")]
    for name in extra:
        axes.plot(d, [row[name] for row in rows], linestyle="--", marker=marker, label=name)
    if extra:
        axes.legend()
    axes.set(title=title, xlabel="distortion", ylabel=f"rate ({unit})", ylim=(0, None))
    figure.savefig(path, dpi=150)


def _rows(levels: list[float], rate: Callable[[float], Bracket]) -> list[dict[str, Any]]:
    rows = []
    for d in levels:
        bracket = rate(d)
        rows.append({"D": d, "lower": bracket.lower, "upper": bracket.upper, "method": bracket.method})
    return rows


@rd_app.callback(invoke_without_command=True)
def bare(
    context: typer.Context,
    pmf: Annotated[str | None, typer.Option("--pmf", help="Without a command: R(D) of independent letters.")] = None,
    distortion: Distortion = "hamming",
    levels: CurveLevels = None,
    num: CurvePoints = 33,
    tol: Tol = 1e-9,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Rate-distortion functions with certificates; `envrate rd --pmf 0.7,0.3 --D 0.1` is short for `discrete`."""
    if context.invoked_subcommand is not None:
        return
    if pmf is None:
        print(context.get_help())
        return
    discrete(pmf, distortion, levels, num, tol, as_json, plot)


@rd_app.command()
def discrete(
    pmf: Pmf,
    distortion: Distortion = "hamming",
    levels: CurveLevels = None,
    num: CurvePoints = 33,
    tol: Tol = 1e-9,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """R(D) of independent letters, by Blahut-Arimoto and faster, certified."""
    with only_json(as_json):
        from envrate import rd
        from envrate.cli._rd_input import distortion as read_distortion
        from envrate.cli._rd_input import vector

        p = vector("pmf", pmf)
        d = read_distortion(distortion, len(p))
        if levels is None:
            curve = rd.curve(p, d, num=num, tol=tol)
            columns = zip(curve.distortion, curve.lower, curve.upper, curve.slope, strict=True)
            rows = [dict(zip(("D", "lower", "upper", "slope"), map(float, point), strict=True)) for point in columns]
        else:
            points = [rd.blahut_arimoto(p, d, D=level, tol=tol) for level in _levels(levels)]
            rows = [
                {"D": float(x.distortion), "lower": float(x.lower), "upper": float(x.upper), "slope": float(x.slope)}
                for x in points
            ]
    _emit("R(D), independent letters", PER_LETTER, rows, as_json, plot)


@rd_app.command()
def profile(
    classes: Annotated[
        str, typer.Option("--classes", help='Class of each cell, -1 for no bound: "-1,0;1,-1", or a file.')
    ],
    frequencies: Annotated[str, typer.Option("--frequencies", help="One per class; several profiles as rows.")],
    pmf: Annotated[str | None, typer.Option("--pmf", help="Law of the required symbol.")] = None,
    transition: Annotated[str | None, typer.Option("--transition", help="Instead, for a source with memory.")] = None,
    response: Response = None,
    tol: Tol = 1e-9,
    as_json: Json = False,
) -> None:
    """Credited rate of a profile of consequences: a vector of distortions."""
    with only_json(as_json):
        import numpy as np

        from envrate import rd
        from envrate.cli._rd_input import integers, matrix, vector

        cells = integers("classes", classes, rows=True)
        f = matrix("frequencies", frequencies)
        if (pmf is None) == (transition is None):
            raise ValueError("--pmf, --transition: expected one of the two")
        if transition is None:
            found = rd.profile_rate(vector("pmf", str(pmf)), cells, f, tol=tol)
            rows = [
                {"lower": float(low), "upper": float(high), "multipliers": np.round(m, 9).tolist()}
                for low, high, m in zip(found.lower, found.upper, found.multipliers, strict=True)
            ]
        else:
            source = rd.MarkovProfile(*_chain(transition, response), cells)
            brackets = [source.bracket(row) for row in f]
            rows = [{"lower": b.lower, "upper": b.upper, "method": b.method} for b in brackets]
    _emit("Credited rate", PER_LETTER, rows, as_json, None)


@rd_app.command()
def gaussian(
    levels: Levels,
    variance: Annotated[float, typer.Option("--variance", help="Of the source.")] = 1.0,
    covariance: Annotated[str | None, typer.Option("--covariance", help="Of a vector: inline or a file.")] = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """R(D) of a Gaussian letter or vector under squared error."""
    with only_json(as_json):
        from envrate import rd
        from envrate.cli._rd_input import matrix

        if covariance is None:
            rows = _rows(_levels(levels), lambda d: rd.gaussian(variance, d))
        else:
            c = matrix("covariance", covariance)
            rows = _rows(_levels(levels), lambda d: rd.gaussian_vector(c, d))
    _emit("R(D), Gaussian", PER_LETTER, rows, as_json, plot)


@rd_app.command()
def process(
    levels: Levels,
    kernel: Annotated[str, typer.Option("--kernel", help="ou, matern32, matern52, rbf, or correlations at the ticks.")],
    tick_ms: Annotated[float | None, typer.Option("--tick-ms", help="Default: continuous time.")] = None,
    timescale_ms: Annotated[float, typer.Option("--timescale-ms", help="Of a named kernel.")] = 1000.0,
    variance: Annotated[float, typer.Option("--variance", help="Of the process.")] = 1.0,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """R(D) of a stationary Gaussian process: bits per tick, or bits per second in continuous time."""
    with only_json(as_json):
        from envrate import rd
        from envrate.cli._rd_input import vector

        table = any(c in kernel for c in ",.")  # numbers or a file's name
        shape: Any = vector("kernel", kernel) if table else kernel
        rows = _rows(
            _levels(levels),
            lambda d: rd.gaussian_process(shape, d, tick_ms=tick_ms, timescale_ms=timescale_ms, variance=variance),
        )
    _emit("R(D), Gaussian process", "bits/s" if tick_ms is None else "bits/tick", rows, as_json, plot)


@rd_app.command()
def markov(
    transition: Transition,
    levels: Levels,
    response: Response = None,
    distortion: Distortion = "hamming",
    tol: Annotated[float, typer.Option("--tol", help="Width of the bracket aimed at, bits.")] = 1e-3,
    n_max: Annotated[int, typer.Option("--n-max", help="Longest block.")] = 12,
    max_work: Annotated[float, typer.Option("--max-work", help="Most multiply-adds per pass over a block.")] = 6e5,
    time_budget_s: Annotated[
        float | None, typer.Option("--time-budget-s", help="Per distortion; default: none, so that runs repeat.")
    ] = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """R(D) of a function of a Markov chain, bracketed by blocks."""
    with only_json(as_json):
        from envrate import rd
        from envrate.cli._rd_input import distortion as read_distortion

        chain, letters = _chain(transition, response)
        d = read_distortion(distortion, int(letters.max()) + 1)
        budget: dict[str, Any] = {"tol": tol, "n_max": n_max, "max_work": max_work, "time_budget_s": time_budget_s}
        rows = _rows(_levels(levels), lambda level: rd.markov(chain, letters, d, level, **budget))
    _emit("R(D), source with memory", PER_LETTER, rows, as_json, plot)


@rd_app.command("entropy-rate")
def entropy_rate(
    transition: Transition,
    response: Response = None,
    emission: Annotated[str | None, typer.Option("--emission", help="Law of the letter in each state, rows.")] = None,
    tol: Annotated[float, typer.Option("--tol", help="Width of the bracket, bits.")] = 1e-12,
    as_json: Json = False,
) -> None:
    """Entropy rate of a function of a Markov chain or of a hidden Markov process."""
    with only_json(as_json):
        from envrate import rd
        from envrate.cli._rd_input import matrix

        chain, letters = _chain(transition, response)
        if emission is not None:
            bracket = rd.hidden_markov_entropy_rate(chain, matrix("emission", emission), tol=tol)
        else:
            bracket = rd.entropy_rate(chain, letters, tol=tol)
        rows = [{"lower": bracket.lower, "upper": bracket.upper, "method": bracket.method}]
    _emit("Entropy rate", PER_LETTER, rows, as_json, None)


@rd_app.command()
def causal(
    levels: Levels,
    change: Annotated[float | None, typer.Option("--change", help="Of a binary chain: chance of a change.")] = None,
    transition: Annotated[
        str | None, typer.Option("--transition", help="A of x' = A x + w: a number or a matrix.")
    ] = None,
    noise: Annotated[str, typer.Option("--noise", help="Covariance of w.")] = "1",
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Causal rate of a binary symmetric chain (--change) or of a Gauss-Markov process (--transition, --noise)."""
    with only_json(as_json):
        from envrate import rd
        from envrate.cli._rd_input import matrix

        if (change is None) == (transition is None):
            raise ValueError("--change, --transition: expected one of the two")
        if change is not None:
            p = change
            rows = _rows(_levels(levels), lambda d: rd.causal_binary_markov(p, d))
        else:
            a, w = matrix("transition", str(transition)), matrix("noise", noise)
            if a.size == w.size == 1:
                scalar, spread = float(a[0, 0]), float(w[0, 0])
                rows = _rows(_levels(levels), lambda d: rd.causal_gauss_markov(scalar, spread, d))
            else:
                rows = _rows(_levels(levels), lambda d: rd.causal_gauss_markov_vector(a, w, d))
    _emit("Causal rate", PER_LETTER, rows, as_json, plot)


@rd_app.command()
def remote(
    joint: Annotated[str, typer.Option("--joint", help="Law of (source, what is seen or known), rows by source.")],
    levels: Levels,
    distortion: Distortion = "hamming",
    known: Annotated[bool, typer.Option("--known", help="Both ends know the second letter, instead.")] = False,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """R(D) of a source seen through an observation, or, with --known, given side information at both ends."""
    with only_json(as_json):
        from envrate import rd
        from envrate.cli._rd_input import distortion as read_distortion
        from envrate.cli._rd_input import matrix

        law = matrix("joint", joint)
        d = read_distortion(distortion, len(law))

        def rate(level: float) -> Bracket:
            if known:
                return rd.conditional(law, d, level)
            point = rd.remote(law, d, level)
            return rd.Bracket(float(point.lower), float(point.upper), method="remote source")

        rows = _rows(_levels(levels), rate)
    _emit("R(D), side information" if known else "R(D), remote source", PER_LETTER, rows, as_json, plot)


@rd_app.command()
def agreement(
    levels: Levels = "0.05,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9",
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Blahut-Arimoto on a discretised Gaussian beside the closed form."""
    with only_json(as_json):
        from envrate import rd

        found = rd.gaussian_agreement(_levels(levels))
        columns = zip(found.distortion, found.lower, found.upper, found.closed_form, strict=True)
        names = ("D", "lower", "upper", "closed form")
        rows = [dict(zip(names, map(float, point), strict=True)) for point in columns]
    more = {"points_of_grid": found.points, "largest_difference": found.largest_difference}
    _emit("Gaussian, two ways", PER_LETTER, rows, as_json, plot, **more)


@rd_app.command()
def estimate(
    samples: Annotated[Path, typer.Argument(help="A .csv or .json file: counts, or one sample per row.")],
    method: Annotated[
        str, typer.Option("--method", help="ksg, neural, or of counts: nsb, miller-madow, jackknife, chao-shen ...")
    ] = "ksg",
    k: Annotated[int, typer.Option("--k", help="Neighbours of ksg.")] = 3,
    variant: Annotated[int, typer.Option("--variant", help="1 or 2, of ksg.")] = 1,
    scale: Annotated[str, typer.Option("--scale", help="none, standard or copula, of ksg.")] = "standard",
    ties: Annotated[str, typer.Option("--ties", help="error, jitter or mixed, of ksg.")] = "error",
    as_json: Json = False,
) -> None:
    """Entropy of counts (one row), information of a table of counts, or information between two columns of samples."""
    with only_json(as_json):
        from envrate.cli._rd_input import matrix
        from envrate.rd import estimators

        data = matrix("samples", str(samples))
        if method in ("ksg", "neural"):
            if data.shape[1] != 2:
                raise ValueError(f"{samples}: expected two columns of samples, got {data.shape[1]}")
            x, y = data.T
            if method == "ksg":
                found = estimators.ksg(x, y, k=k, variant=variant, scale=scale, ties=ties)
            else:
                found = estimators.neural(x, y)
            what = "mutual information"
        elif min(data.shape) == 1:
            found, what = estimators.entropy(data.ravel(), method=method), "entropy"
        else:
            found, what = estimators.mutual_information(data, method=method), "mutual information"
        rows = [{"what": what, "estimate": found.value, "method": found.method, "samples": found.samples}]
    _emit("Estimate, not a bound", "bits", rows, as_json, None, kind="estimate")
