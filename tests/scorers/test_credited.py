"""Credited throughput: the field's own numbers are special cases; the chain of bounds holds; gaming earns nothing."""

from __future__ import annotations

import numpy as np
import pytest

from envrate import rd
from envrate.scorers import CreditedRate, profile
from envrate.scorers._severity import severity
from envrate.task import Severity, Task


def entropy(*p: float) -> float:
    """Entropy in bits of a law; of (p, 1 - p) for a single p."""
    law = np.array(p if len(p) > 1 else (p[0], 1 - p[0]))
    law = law[law > 0]
    return float(-(law * np.log2(law)).sum())


def rate(pmf, cells, *, exchangeable=(), resolved=False) -> float:
    """C in bits per letter of a table given as {(required, column): share}; the rest of each row is handled."""
    size = len(pmf)
    given = np.zeros((size, size + 2))
    for (a, column), share in cells.items():
        given[a, column] = share
    given[np.arange(size), np.arange(size)] = 1.0 - given.sum(axis=1)
    classes = profile(pmf, exchangeable=exchangeable, resolved=resolved)
    return float(CreditedRate(classes).lower(classes.frequencies(given)))


# -- the field's own numbers, to 1e-9 -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [2, 3, 4, 8])
@pytest.mark.parametrize("accuracy", [0.95, 0.7, 0.55])
def test_exchangeable_options_give_the_wolpaw_rate(options, accuracy):
    # Wolpaw et al. 1998: log2 K + P log2 P + (1 - P) log2((1 - P) / (K - 1)), for P >= 1 / K.
    k, p = options, accuracy
    expected = np.log2(k) + p * np.log2(p) + (1 - p) * np.log2((1 - p) / (k - 1))
    pmf = [0.0, *[1 / k] * k]
    # Errors spread unevenly: pooled, they give the same rate.
    cells = {(a, a % k + 1): 1 - p for a in range(1, k + 1)}
    group = [tuple(range(1, k + 1))]
    assert rate(pmf, cells, exchangeable=group) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("accuracy", [0.25, 0.2, 0.0])
def test_the_wolpaw_rate_is_exactly_zero_up_to_chance(accuracy):
    pmf, group = [0.0, *[0.25] * 4], [(1, 2, 3, 4)]
    assert rate(pmf, {(a, a % 4 + 1): 1 - accuracy for a in range(1, 5)}, exchangeable=group) == 0.0


@pytest.mark.parametrize("unheard", [0.0, 0.1, 0.4, 0.9])
@pytest.mark.parametrize("pmf", [(0.5, 0.5), (0.7, 0.3), (0.6, 0.3, 0.1), (0.05, 0.2, 0.25, 0.5)])
def test_known_erasure_gives_its_share_of_the_entropy(pmf, unheard):
    # Erasure channel (Cover and Thomas, 7.1.5): I = (1 - e) H(A), whatever the law of A.
    cells = {(a, len(pmf) + 1): unheard for a in range(len(pmf))}
    assert rate(pmf, cells, resolved=True) == pytest.approx((1 - unheard) * entropy(*pmf), abs=1e-9)


def test_missed_alerts_give_the_z_channel():
    # I = H(.3) - .5 H(.4) = 0.395816 for p = 1/2 and 40 % of the alerts missed.
    assert rate((0.5, 0.5), {(1, 0): 0.4}) == pytest.approx(entropy(0.3) - 0.5 * entropy(0.4), abs=1e-9)
    assert rate((0.5, 0.5), {(1, 0): 0.4}) == pytest.approx(0.395816, abs=1e-6)


def test_symmetric_errors_give_the_binary_symmetric_channel():
    # I = 1 - H(.2) = 0.278072 for p = 1/2.
    assert rate((0.5, 0.5), {(0, 1): 0.2, (1, 0): 0.2}) == pytest.approx(1 - entropy(0.2), abs=1e-9)
    assert 1 - entropy(0.2) == pytest.approx(0.278072, abs=1e-6)


def test_alerts_swapped_in_pairs_give_detection_only():
    # Four alerts, always detected, labels swapped: C = H(alert or not).
    pmf = (0.4, 0.2, 0.1, 0.2, 0.1)
    swapped = {(1, 2): 1.0, (2, 1): 1.0, (3, 4): 1.0, (4, 3): 1.0}
    assert rate(pmf, swapped) == pytest.approx(entropy(0.4), abs=1e-9)
    merged = CreditedRate(profile(pmf), merged=True)
    assert merged.lower(np.zeros(2)) == pytest.approx(entropy(0.4), abs=1e-9)


def test_no_error_gives_the_entropy():
    assert rate((0.4, 0.2, 0.4), {}) == pytest.approx(entropy(0.4, 0.2, 0.4), abs=1e-9)


def test_hearing_nulls_fully_and_sixty_percent_of_alerts_gives_six_tenths_of_a_bit_resolved():
    # The common bound lets nulls be unheard as often as alerts: (1 - .4) H(1/2).
    assert rate((0.5, 0.5), {(1, 3): 0.4}, resolved=True) == pytest.approx(0.6, abs=1e-9)


# -- agents that game it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_outcomes_that_do_not_look_at_the_required_symbol_get_exactly_nothing(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    pmf = rng.dirichlet(np.ones(size))
    constant = rng.dirichlet(np.full(size, 0.5)) if seed % 2 else np.eye(size)[rng.integers(size)]
    for resolved in (False, True):
        classes = profile(pmf, resolved=resolved)
        given = np.zeros((size, size + 2))
        given[:, :size] = constant
        assert CreditedRate(classes).lower(classes.frequencies(given)) == 0.0


def test_not_knowing_on_alerts_only_gets_nothing():
    # Never acts, answers "don't know" to probes of alerts: with a bound per symbol this would get the whole demand.
    assert rate((0.5, 0.5), {(1, 3): 1.0}, resolved=True) == 0.0


# -- bounds on populations ------------------------------------------------------------------------------------------


def channel(rng: np.random.Generator, size: int) -> np.ndarray:
    """(A, A) a random channel that is right more often than not, sometimes with forbidden cells."""
    noise = rng.dirichlet(np.full(size, 0.6), size)
    noise[rng.random((size, size)) < 0.2] = 0.0
    quality = rng.beta(2, 1)
    mixed = quality * np.eye(size) + (1 - quality) * noise
    return mixed / mixed.sum(axis=1, keepdims=True)


def population(seed: int, stay: float) -> tuple[Task, np.ndarray]:
    """A random task, memoryless for stay = 0, and the (A, A + 2) table of an agent on it."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 4))
    law = rng.dirichlet(np.full(size, 2.0))
    transition = stay * np.eye(size) + (1 - stay) * law
    severity_of = Severity(*rng.uniform(0.5, 3.0, 3).tolist())
    task = Task(latent={"kind": "markov", "transition": transition}, response=tuple(range(size)), severity=severity_of)
    table = np.zeros((size, size + 2))
    table[:, :size] = channel(rng, size)
    return task, table


@pytest.mark.parametrize("seed", range(100))
def test_rate_equivalent_below_credited_below_demand_on_memoryless_populations(seed):
    task, table = population(seed, 0.0)
    seconds = task.tick_ms / 1000.0
    rates = []
    for resolved in (False, True):
        classes = profile(task.pmf, task.distortion, resolved=resolved)
        rates.append(float(CreditedRate(classes, task).lower(classes.frequencies(table))))
    classes = profile(task.pmf, task.distortion)
    harmless = task.demand(float(severity(classes, classes.frequencies(table))))
    assert harmless.lower * seconds <= rates[0] + 1e-7
    assert max(rates) <= task.demand().upper * seconds + 1e-9


def check_sticky(seed: int) -> None:
    """Lower ends of two brackets need not be in order, so each end is held against the other's far end."""
    task, table = population(seed, 0.3 + 0.6 * (seed % 10) / 10)
    classes = profile(task.pmf, task.distortion)
    frequencies = classes.frequencies(table)
    process = rd.MarkovProfile(task.latent.matrix, task.table, classes.matrix, 4)
    credited = process.bracket(frequencies)
    level = float(severity(classes, frequencies))
    harmless = rd.markov(task.latent.matrix, task.table, task.distortion, level, n_max=4, max_work=1e12)
    assert harmless.lower <= credited.upper + 1e-7
    assert credited.lower <= rd.entropy_rate(task.latent.matrix, task.table).upper + 1e-9
    assert float(CreditedRate(classes, task).lower(frequencies)) <= credited.upper + 1e-7


@pytest.mark.parametrize("seed", range(6))
def test_rate_equivalent_below_credited_below_demand_on_sticky_populations(seed):
    check_sticky(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6, 100))
def test_rate_equivalent_below_credited_below_demand_on_more_sticky_populations(seed):
    check_sticky(seed)


def test_an_echo_one_tick_late_on_a_sticky_chain_gets_its_share_and_not_the_demand():
    # Required 1 or 2, staying with .9: the echo is wrong in 10 % of the ticks. One letter alone would credit it with
    # 1 - H(.1) = .531 bits, more than the process has (H(.1) = .469).
    task = Task(latent={"kind": "markov", "transition": ((0.9, 0.1), (0.1, 0.9))}, response=(1, 2))
    classes = profile(task.pmf, task.distortion)
    table = np.zeros((3, 5))
    table[1, [1, 2]], table[2, [1, 2]] = (0.9, 0.1), (0.1, 0.9)
    found = float(CreditedRate(classes, task).lower(classes.frequencies(table)))
    assert 0.05 < found < 0.5 * entropy(0.1)
    one_letter = float(CreditedRate(classes).lower(classes.frequencies(table)))
    assert one_letter == pytest.approx(1 - entropy(0.1), abs=1e-9) and one_letter > entropy(0.1)


def test_a_sticky_chain_without_an_error_gets_its_entropy_rate():
    task = Task(latent={"kind": "markov", "transition": ((0.9, 0.1), (0.1, 0.9))}, response=(1, 2))
    classes = profile(task.pmf, task.distortion)
    found = float(CreditedRate(classes, task).lower(np.zeros(classes.num_classes)))
    assert found == pytest.approx(entropy(0.1), abs=2e-6) and found <= entropy(0.1) + 1e-12


def test_a_thresholded_process_is_credited_less_its_memory():
    # No finite chain: one letter less H(A) - h, which is all there is at no error.
    task = Task(
        latent={"kind": "gaussian-process", "kernel": "ou", "timescale_ms": 1000, "variance": 1.0},
        response={"kind": "threshold", "edges": (0.0,), "symbols": (0, 1)},
    )
    classes = profile(task.pmf, task.distortion)
    found = float(CreditedRate(classes, task).lower(np.zeros(classes.num_classes)))
    assert found == pytest.approx(task.demand().lower * task.tick_ms / 1000.0, abs=1e-9)
