"""The credited rate of sources with memory against exactly known cases and against channels met by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envrate import rd
from envrate.rd import _block_kernel
from envrate.rd._blocks import Blocks, Condition, block_law
from envrate.rd._chain import function_of_chain

BINARY = np.array([[-1, 0], [1, -1]])  # wrong(0), wrong(1)


def h(p):
    return -sum(x * np.log2(x) for x in (p, 1 - p) if x > 0)


def sticky(p):
    return [[1 - p, p], [p, 1 - p]]


def test_all_right_gives_the_entropy_rate():
    # No error is allowed, so I(A; Y) = H(A): the entropy rate h(p) of the chain.
    profile = rd.MarkovProfile(sticky(0.1), [0, 1], BINARY)
    assert profile.lower([0.0, 0.0]) == pytest.approx(h(0.1), abs=1e-9)
    bracket = profile.bracket([0.0, 0.0])
    assert bracket.lower == pytest.approx(h(0.1), abs=1e-9) and bracket.width < 1e-9


def test_all_right_gives_the_lower_end_for_a_hidden_chain():
    transition = [
        [0.96, 0.02, 0.0, 0.02, 0.0],
        [0.2, 0.0, 0.8, 0.0, 0.0],
        [0.25, 0.0, 0.75, 0.0, 0.0],
        [0.2, 0.0, 0.0, 0.0, 0.8],
        [0.25, 0.0, 0.0, 0.0, 0.75],
    ]
    classes = [[-1, 0, 0], [1, -1, 2], [3, 4, -1]]
    profile = rd.MarkovProfile(transition, [0, 1, 0, 2, 0], classes, n=4)
    rate = rd.entropy_rate(transition, [0, 1, 0, 2, 0])
    assert profile.lower(np.zeros(5)) == pytest.approx(rate.lower, abs=1e-8)
    assert profile.lower(np.zeros(5)) <= rate.upper


@pytest.mark.parametrize("constant", [0, 1])
def test_constant_policies_get_exactly_nothing(constant):
    profile = rd.MarkovProfile(sticky(0.1), [0, 1], BINARY)
    f = [0.0, 0.0]
    f[1 - constant] = 0.5
    assert profile.lower(f) == 0.0
    assert profile.upper(f) == pytest.approx(0.0, abs=1e-9)


def test_exact_below_the_critical_distortion():
    # Gray 1970: the binary symmetric Markov source has R(D) = h(p) - h(D) for D <= D_c = (1 - sqrt(1 - (p/q)^2)) / 2.
    p = 0.25
    critical = 0.5 * (1 - np.sqrt(1 - (p / (1 - p)) ** 2))
    profile = rd.MarkovProfile(sticky(p), [0, 1], BINARY)
    for D in (0.2 * critical, critical):
        assert profile.lower([D / 2, D / 2]) == pytest.approx(h(p) - h(D), abs=1e-8)


def test_an_echo_one_tick_late_does_not_keep_up():
    # The echo Y_t = A_{t-1} errs with probability p on either symbol. Its profile is that of D = p = 0.1, where
    # Gray's conditional bound with n = 8 is 0.125532, R_8 = 0.173259 and the causal rate is h(p*D) - h(D) = 0.211081.
    profile = rd.MarkovProfile(sticky(0.1), [0, 1], BINARY)
    bracket = profile.bracket([0.05, 0.05])
    assert 0.12550 < bracket.lower < 0.125533
    assert 0.173258 < bracket.upper < 0.1734
    assert bracket.lower < 0.3 * h(0.1)  # a one-letter bracket would credit 1 - h(0.1) = 0.53


def test_memoryless_sources_get_the_one_letter_rate():
    pmf = np.array([0.5, 0.3, 0.2])
    classes = [[-1, 0, 0], [1, -1, 2], [3, 4, -1]]
    f = np.array([[0.05, 0.02, 0.01, 0.03, 0.0], [0.1, 0.1, 0.0, 0.0, 0.05]])
    profile = rd.MarkovProfile(np.tile(pmf, (3, 1)), [0, 1, 2], classes)
    assert np.allclose(profile.lower(f), rd.profile_rate(pmf, classes, f).lower, atol=1e-12)


def information_and_profile(transition, response, classes, channel, length):
    """I(A^N; Y^N) / N and class frequencies of y_t ~ channel(. | a_t, a_{t-1}), by enumeration of all blocks."""
    source = function_of_chain(transition, response)
    letters = np.flatnonzero(source.pmf > 0)
    law = block_law(source, source.stationary, letters, length)
    blocks = list(itertools.product(range(len(letters)), repeat=length))
    outcomes = channel.shape[-1]
    joint = np.zeros((len(blocks), outcomes**length))
    f = np.zeros(int(np.max(classes)) + 1)
    for i, block in enumerate(blocks):
        rows = [channel[a, block[t - 1] if t else a] for t, a in enumerate(block)]
        out = np.ones(1)
        for t, row in enumerate(rows):
            out = np.kron(out, row)
            for y in range(outcomes):
                c = classes[letters[block[t]], y]
                if c >= 0:
                    f[c] += law[i] * row[y] / length
        joint[i] = law[i] * out
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log2(joint[seen] / product[seen])).sum()) / length, f


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_no_channel_beats_the_lower_end(seed, states):
    # R(f) <= I(A^N; Y^N) / N for every channel on blocks of N that has the profile f.
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(states, 0.5), size=states) + 0.01
    transition /= transition.sum(1, keepdims=True)
    response = np.arange(states) % 2
    classes = np.array([[-1, 0, 2], [1, -1, 3]])
    channel = np.zeros((2, 2, 3))
    for a, previous in itertools.product(range(2), repeat=2):
        right = rng.uniform(0.5, 1.0)
        channel[a, previous] = (1 - right) * rng.dirichlet(np.ones(3))
        channel[a, previous, a] += right
    information, f = information_and_profile(transition, response, classes, channel, 5)
    profile = rd.MarkovProfile(transition, response, classes, n=4)
    lower, upper = float(profile.lower(f)), float(profile.upper(f))
    assert lower <= information + 1e-9
    assert lower <= upper + 1e-9


def test_planes_of_one_profile_hold_at_all_others():
    # A plane made for one profile is a bound at every other one; the bound there never exceeds the upper end.
    profile = rd.MarkovProfile(sticky(0.1), [0, 1], BINARY, n=6)
    rng = np.random.default_rng(1)
    f = rng.uniform(0.0, 0.25, size=(20, 2))
    values = profile.lower(f, anchors=[0.02, 0.05])
    assert (values <= profile.upper(f) + 1e-9).all()
    assert (values > 0.0).any()


def test_a_rate_depends_on_its_profile_only():
    # Alone, in any batch and after any other call it is the same, to the last bit.
    rng = np.random.default_rng(0)
    f = np.array([0.04, 0.05, 0.02]) * rng.uniform(0.5, 2.0, size=(6, 2, 3))
    classes = [[-1, 0, 2], [1, -1, 2]]

    def fresh():
        return rd.MarkovProfile(sticky(0.2), [0, 1], classes, n=6)

    together = fresh().lower(f)
    assert together.shape == (6, 2)
    alone = np.array([[fresh().lower(g) for g in row] for row in f])
    profile = fresh()
    profile.lower(f[3:], anchors=f[0])
    backwards = profile.lower(f[::-1])[::-1]
    assert np.array_equal(together, alone) and np.array_equal(together, backwards)


def test_anchors_bound_their_surroundings():
    # A convex rate is above its planes, and near an anchor by little: half the curvature times the square of the step.
    profile = rd.MarkovProfile(sticky(0.2), [0, 1], BINARY, n=6)
    centre = np.array([0.04, 0.05])
    f = centre * np.random.default_rng(0).uniform(0.9, 1.1, size=(30, 2))
    own, shared = profile.lower(f), profile.lower(f, anchors=centre)
    assert (shared <= own + 3e-5).all()  # the certificate of a plane is good to 2e-5
    assert (own - shared).max() < 1e-3


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_plane_is_certified(seed):
    """The search's own evaluation of a plane against one with the full Kronecker power and an independent dual bound.

    V_n(m) >= F(q) - log max c for every q (Gallager 1968, theorem 9.4.1), and V_n(m) <= F(q).
    """
    rng = np.random.default_rng(seed)
    letters, outcomes, n = 2, int(rng.integers(2, 4)), 3
    classes = np.full((letters, outcomes), -1)
    cells = [(a, y) for a in range(letters) for y in range(outcomes) if y != a]
    for number, (a, y) in enumerate(cells):
        classes[a, y] = number
    f = rng.uniform(0.005, 0.15, len(cells))
    weights = np.array([0.3, 0.7])
    laws = rng.dirichlet(np.ones(letters**n), 2).reshape(2, 4, 2)
    m = rng.uniform(0.0, 4.0, f.shape)
    q = rng.dirichlet(np.ones(outcomes**n), 2).reshape(2, outcomes**2, outcomes)
    intercept = _block_kernel.climb(classes, n, laws, weights, f, m, q, 20, 6, 1.0, 300, 1e-6)
    kernel = np.where(classes < 0, 1.0, np.exp(-m[classes]))
    full = np.kron(np.kron(kernel, kernel), kernel)
    value = 0.0
    for weight, law in zip(weights, laws.reshape(2, -1), strict=True):
        # Blahut-Arimoto to the end, from the uniform law.
        start = np.full(outcomes**n, outcomes**-n)
        for _ in range(4000):
            start = start * (full.T @ (law / (full @ start)))
        value -= weight * float(law @ np.log(full @ start)) / n
    assert intercept <= value + 1e-9
    assert intercept >= value - 2e-4


def test_more_letters_raise_the_lower_end():
    lower = [float(rd.MarkovProfile(sticky(0.1), [0, 1], BINARY, n=n).lower([0.05, 0.05])) for n in (1, 2, 4, 8)]
    assert all(a < b + 1e-4 for a, b in itertools.pairwise(lower))
    assert lower[-1] > lower[0] + 0.1


def test_required_symbols_that_do_not_occur_are_left_out():
    # Symbol 0 (null) is never due: its row does not matter.
    with_null = rd.MarkovProfile(sticky(0.1), [1, 2], [[-1, 4, 4], [0, -1, 1], [2, 3, -1]], n=4)
    assert with_null.lower([0.0, 0.0, 0.0, 0.0, 0.0]) == pytest.approx(h(0.1), abs=1e-9)


def test_long_blocks_of_large_alphabets_are_made_shorter_and_say_so():
    k = 12
    transition = 0.9 * np.eye(k) + 0.1 / k
    classes = np.where(np.eye(k, dtype=int) == 1, -1, 0)
    profile = rd.MarkovProfile(transition, np.arange(k), classes, n=8)
    assert profile.n < 8 and "8 asked for" in profile.method


def test_block_solutions_are_certified_by_an_independent_evaluation():
    # F(q) - log max c <= V <= F(q), evaluated with the full Kronecker power.
    rng = np.random.default_rng(3)
    costs = np.array([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]])
    law = rng.dirichlet(np.ones(8)).reshape(1, 4, 2)
    blocks = Blocks(costs, 3)
    m = np.array([1.3, 0.7])
    condition = Condition("", np.ones(1), law, 0.0)
    solution = blocks.solve(m, condition, np.full((1, 4, 2), 1 / 8), tol=1e-10, iterations=2000, effort=0)
    kernel = np.exp(-np.tensordot(m, costs, axes=1))
    full = np.kron(np.kron(kernel, kernel), kernel)
    q = solution.output.ravel()
    r = full @ q
    value = -(law.ravel() * np.log(r)).sum()
    lower = value - np.log((full.T @ (law.ravel() / r)).max())
    assert solution.value == pytest.approx(value, abs=1e-12)
    assert lower <= solution.lower + 1e-12 <= value + 1e-12
    assert solution.value - solution.lower <= 1e-10
    # Costs and information of the channel q K / r, cell by cell.
    joint = law.ravel()[:, None] * full * q / r[:, None]
    for c in range(2):
        one, ones = costs[c], np.ones((2, 2))
        places = ((one, ones, ones), (ones, one, ones), (ones, ones, one))
        total = sum(np.kron(np.kron(first, second), third) for first, second, third in places)
        assert solution.costs[c] == pytest.approx((joint * total).sum() / 3, abs=1e-12)
    out = joint.sum(0)
    information = (joint * np.log(joint / (law.ravel()[:, None] * out))).sum()
    assert solution.information == pytest.approx(information, abs=1e-9)


@pytest.mark.parametrize(
    ("classes", "f", "message"),
    [
        ([[0, 0], [1, -1]], [0.1, 0.1], "row 0 has no cell of class -1"),
        ([[-1, 0]], [0.1], "classes: expected integers of shape"),
        ([[-1, -1], [-1, -1]], [0.1], "classes: every cell is -1"),
        (BINARY, [0.1], "frequencies: expected a last axis of 2"),
        (BINARY, [0.1, np.nan], "frequencies"),
        (BINARY, [-0.1, 0.1], "frequencies"),
    ],
)
def test_bad_input_names_the_argument(classes, f, message):
    with pytest.raises(ValueError, match=message):
        rd.MarkovProfile(sticky(0.1), [0, 1], classes).lower(f)
