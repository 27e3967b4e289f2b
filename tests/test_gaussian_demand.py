from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from envrate import Task, Threshold, rd, tasks
from envrate import _demand_gaussian as demand
from envrate.envs import rollout
from envrate.latents import GaussianProcess, MarkovChain, Product

T = 200


def ou_with(a: float, tolerance: float) -> Task:
    # An Ornstein-Uhlenbeck process read every T ms is an AR(1) with coefficient exp(-T / tau).
    return Task(GaussianProcess("ou", timescale_ms=-T / math.log(a)), "track", tick_ms=T, tolerance=tolerance)


def test_tracking_demand_equals_the_oracle(shared_data: Path) -> None:
    # S(w) = (1 - a^2) / (1 - 2 a cos w + a^2), reverse water-filling (Kolmogorov 1956; Berger 1971, 4.5).
    rows = json.loads((shared_data / "rd_oracles.json").read_text())["ar1"]["rows"]
    for row in rows:
        bracket = ou_with(float(row["a"]), float(row["D"])).demand().scaled(T / 1000)
        assert bracket.lower <= float(row["R"]) <= bracket.upper
        assert bracket.width < 1e-9


def test_small_distortion_has_the_closed_form() -> None:
    # Below D_c = (1 - a) / (1 + a) all frequencies are active: R = log2((1 - a^2) / D) / 2.
    a, d = 0.9, 0.02
    assert np.isclose(ou_with(a, d).demand().mid * T / 1000, 0.5 * math.log2((1 - a * a) / d), atol=1e-10)


def test_independent_values_are_the_vector_formula() -> None:
    # R = sum max(0, log2(lambda / theta)) / 2 with sum min(lambda, theta) = D over the eigenvalues (3.3 and 0.7).
    law = GaussianProcess((1.0,), coregionalisation=((2.0, 1.3 * math.sqrt(0.75)), (1.3 * math.sqrt(0.75), 2.0)))
    eigenvalues = np.linalg.eigvalsh(law.output_covariance)
    task = Task(law, "track", tick_ms=T, tolerance=1.0)
    expected = 0.5 * np.log2(eigenvalues / 0.5).sum()
    assert np.isclose(task.demand().mid * T / 1000, expected, atol=1e-9)


def test_a_product_splits_the_budget_at_equal_slope() -> None:
    slow, fast = GaussianProcess("ou", timescale_ms=4000), GaussianProcess("matern32", timescale_ms=500, variance=2.0)
    both = Task(Product(a=slow, b=fast), "track", tick_ms=T, tolerance=0.4)
    alone = [Task(law, "track", tick_ms=T, tolerance=0.1) for law in (slow, fast)]
    shares = np.linspace(0.001, 0.399, 1001)
    split = demand.rates(alone[0], shares) + demand.rates(alone[1], 0.4 - shares)
    assert both.demand().mid <= split.min() + 1e-6
    assert both.demand().mid > split.min() - 1e-4  # the best split lies within half a step of the grid


@pytest.mark.parametrize("name", ["track", "track3"])
def test_fast_rates_agree_with_the_certified_one(name: str) -> None:
    task = tasks.get(name)
    total = float(np.trace(task.latent.output_covariance))
    d = np.array([0.003, 0.05, 0.3, 0.9]) * total
    assert np.allclose(demand.rates(task, d), [task.demand(x).mid for x in d], atol=1e-6)
    assert demand.rates(task, np.array([0.0, total, np.nan]))[:2].tolist() == [math.inf, 0.0]


def test_at_zero_distortion_the_demands_of_chains_add() -> None:
    a, b = MarkovChain(((0.9, 0.1), (0.2, 0.8))), MarkovChain(((0.5, 0.5),) * 2)
    # Every combination has a response of its own, so the rates of both parts are due.
    product = Task(Product(a=a, b=b), (0, 1, 2, 3), tick_ms=T, micro_turn_ms=T)
    parts = [Task(law, (0, 1), tick_ms=T, micro_turn_ms=T).demand().mid for law in (a, b)]
    assert np.isclose(product.demand().mid, sum(parts), atol=1e-6)


def test_a_thresholded_value_without_memory_has_its_entropy() -> None:
    task = tasks.get("exceed").replace(latent=GaussianProcess((1.0,)))
    p = 2 * 0.022750131948179195  # P(z > 2), from the normal law
    expected = -(p * math.log2(p) + (1 - p) * math.log2(1 - p)) * 2
    assert np.isclose(task.demand().mid, expected, atol=1e-9) and task.demand().kind == "exact"


def hidden_enclosure(edges: np.ndarray, symbols: tuple[int, ...], rho: float, n: int) -> tuple[float, float]:
    """H(A_n | A_2 ... A_n-1, Z_1) and H(A_n | A_2 ... A_n-1) of symbols 0 and 1 of an AR(1) process of variance 1.

    They enclose the entropy rate (Cover and Thomas 2006, theorem 4.5.1); integrals over z by the midpoint rule,
    whose cells end at the thresholds.
    """
    step = 1 / 100
    z = (np.arange(-700, 700) + 0.5) * step
    kernel = step * np.exp(-0.5 * (z - rho * z[:, None]) ** 2 / (1 - rho**2)) / np.sqrt(2 * np.pi * (1 - rho**2))
    law = step * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    symbol = np.asarray(symbols)[np.searchsorted(edges, z, side="right")]
    # P(a_2 ... a_n | z_1), a row per sequence, the last symbol varying slowest.
    chances = np.ones((1, len(z)))
    for _ in range(n - 1):
        chances = np.concatenate([(chances * (symbol == a)) @ kernel.T for a in (0, 1)])
    pairs = np.moveaxis(chances.reshape(-1, 2, len(z)), 1, 0)  # the first factor made is the last symbol

    def entropy(joint: np.ndarray) -> np.ndarray:
        given = joint.sum(0, keepdims=True)
        return -(joint * np.log2(np.maximum(joint, 1e-300) / np.maximum(given, 1e-300))).sum((0, 1))

    return float(law @ entropy(pairs)), float(entropy(pairs @ law))


@pytest.mark.parametrize(("timescale", "edges"), [(2000.0, (-2.0, 2.0)), (500.0, (-1.0, 1.5)), (6000.0, (-0.5, 0.5))])
def test_a_thresholded_process_is_an_estimate_inside_its_enclosure(timescale: float, edges: tuple[float, ...]) -> None:
    task = tasks.get("exceed").replace(
        latent=GaussianProcess("ou", timescale_ms=timescale), response=Threshold(edges, (1, 0, 1))
    )
    found, rho = task.demand().scaled(0.5), math.exp(-500 / timescale)  # bits per tick
    below, above = hidden_enclosure(np.asarray(edges), (1, 0, 1), rho, 9)
    assert found.kind == "estimate" and found.width < 1e-6
    assert below - 1e-5 < found.lower < found.upper < above + 1e-5 and above - below < 0.02


def test_a_smooth_thresholded_process_has_an_enclosure() -> None:
    task = tasks.get("exceed")
    smooth = task.replace(latent=GaussianProcess("matern32", timescale_ms=2000)).demand()
    assert smooth.kind == "exact" and 0 < smooth.lower < smooth.upper < task.demand().upper


@pytest.mark.parametrize("kernel", ["ou", "matern32"])
def test_a_threshold_task_has_a_rate_at_every_distortion(kernel: str) -> None:
    # R_1(D) - (H(A) - h) <= R(D) <= R_1(D): one letter, less what the past tells (after Shannon's lower bound).
    task = tasks.get("exceed").replace(latent=GaussianProcess(kernel, timescale_ms=2000.0))
    entropy = float(-(task.pmf * np.log2(task.pmf)).sum())
    for level in (0.05, 0.3):
        found = task.demand(level).scaled(0.5)
        letter = rd.blahut_arimoto(task.pmf, task.distortion, D=level)
        assert found.kind == ("estimate" if kernel == "ou" else "exact")
        memory = entropy - task.demand().lower * 0.5
        assert max(0.0, letter.lower - memory) - 1e-9 <= found.lower <= found.upper <= letter.upper + 1e-6
    curve = task.demand_curve()
    assert curve.lower[0] == pytest.approx(task.demand().lower) and curve.upper[-1] == 0.0
    assert (np.diff(curve.upper) <= 0).all()


def test_the_demand_of_a_task_is_the_same_object_for_every_modality() -> None:
    from envrate import _ids

    by_task: dict[str, set[object]] = {}
    for task, _ in _ids.IDS.values():
        by_task.setdefault(task, set()).add(tasks.get(task).demand())
    assert set(by_task) == set(tasks.names()) and all(len(found) == 1 for found in by_task.values())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Task(GaussianProcess(), "track"), "tolerance: a tracking task expected"),
        (lambda: Task(GaussianProcess(), (0, 1)), "response: a Gaussian process expected 'track' or a Threshold"),
        (lambda: Task(MarkovChain(((0.5, 0.5),) * 2), "track", tolerance=1.0), "response: 'track' expected"),
        (lambda: Threshold((1.0, 0.0), (0, 1, 0)), "response.edges: expected ascending"),
        (lambda: Threshold((0.0,), (0, 1, 0)), "response.symbols: expected 2"),
        (lambda: Task(GaussianProcess(), Threshold((0.0,), (0, 1), output=1)), "response.output: expected 0 ... 0"),
        (lambda: Task(GaussianProcess(), Threshold((0.0,), (0, 0))), "response: every interval requires 0"),
    ],
)
def test_bad_tasks_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_tasks_on_values_are_json() -> None:
    for name in ("track", "track3", "exceed"):
        task = tasks.get(name)
        assert Task.from_dict(json.loads(json.dumps(task.to_dict()))) == task


@pytest.mark.parametrize("kernel", ["ou", "matern32", "matern52", "rbf", (1.0, 0.5, 0.1)])
def test_two_spectra_agree(kernel: object) -> None:
    """The demand's spectrum (closed form, aliases or a sum over lags) is the one of the process's state space."""
    law, w = GaussianProcess(kernel, timescale_ms=900.0), np.linspace(0.0, np.pi, 50)
    (spectrum, variance), *rest = demand.components(law, 200)
    assert variance == 1.0 and not rest
    np.testing.assert_allclose(spectrum(w), law.spectrum(w, 200), rtol=1e-7, atol=1e-10)


def test_in_a_product_of_both_sorts_the_chains_are_due() -> None:
    law = Product(salience=MarkovChain(((0.5, 0.5),) * 2), pitch=GaussianProcess("ou"))
    task = Task(law, (0, 1), tick_ms=500, micro_turn_ms=100)
    assert task.demand().lower == task.demand().upper == 2.0
    run = rollout(task, "reactive", num_envs=4, num_ticks=50)
    assert (run.ticks["required"] == run.ticks["latent"]).all() and set(np.unique(run.ticks["latent"])) == {0, 1}
