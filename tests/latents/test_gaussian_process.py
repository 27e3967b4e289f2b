from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envrate import _counters
from envrate._spec import from_dict, to_dict
from envrate.latents import ContinuousMarkovChain, GaussianProcess, MarkovChain, Product, _gp_kernels, _kernels

T = 200
MARKOVIAN = ("ou", "matern32", "matern52")


def damped(lag_ms: np.ndarray) -> np.ndarray:
    # A positive definite function: the product of exp(-|t|/a) and cos(t/b).
    return np.exp(-lag_ms / 500) * np.cos(lag_ms / 300)


@pytest.mark.parametrize("kernel", MARKOVIAN)
def test_state_space_has_the_kernel_as_its_covariance(kernel: str) -> None:
    law = GaussianProcess(kernel, timescale_ms=1000)
    space = law.state_space(T)
    move, found = np.eye(law.state_order), []
    for _ in range(12):
        found.append((move @ space.stationary)[0, 0])
        move = space.transition @ move
    assert np.allclose(found, law.correlation(12, T), atol=1e-13)
    assert np.linalg.eigvalsh(space.noise).min() > 0


@pytest.mark.parametrize("kernel", [*MARKOVIAN, "rbf"])
def test_spectrum_is_the_sum_over_lags(kernel: str) -> None:
    law, w = GaussianProcess(kernel, timescale_ms=700), np.linspace(0, np.pi, 9)
    lags = np.arange(1, 2000)
    direct = 1 + 2 * np.cos(w[:, None] * lags) @ law.correlation(2000, T)[1:]
    assert np.allclose(law.spectrum(w, T), direct, atol=1e-9)


def sample(law: object, ticks: int, envs: int, seed: int = 0) -> np.ndarray:
    kernel = _kernels.kernel(law, T)
    key = tuple(jnp.asarray(word) for word in _counters.keys(seed, envs))

    def run() -> jax.Array:
        def bits(t: int) -> _kernels.Draws:
            return _kernels.Draws(_counters.block(key, jnp.int32(t), jnp.int32(0), _counters.Stream.LATENT))

        state, z = kernel.start(bits(0), ticks)
        found = [z]
        for t in range(1, ticks):
            state, z = kernel.move(state, bits(t), jnp.int32(t))
            found.append(z)
        return jax.tree.map(lambda *rows: jnp.stack(rows), *found)

    return jax.tree.map(np.asarray, jax.jit(run)())


@pytest.mark.parametrize("kernel", [*MARKOVIAN, "rbf", damped])
def test_samples_have_the_covariance_within_their_standard_error(kernel: object) -> None:
    mix = ((1.0, 0.6), (0.6, 2.0))
    law = GaussianProcess(kernel, timescale_ms=600, variance=1.5, coregionalisation=mix).at_tick(T)
    n = 20_000
    z = sample(law, 5, n).astype(np.float64)  # (ticks, d, envs)
    wanted = 1.5 * np.asarray(mix)[None] * law.correlation(5, T)[:, None, None]
    found = np.einsum("dn,ten->tde", z[0], z) / n
    # var(x y) = var x var y + cov(x, y)^2 for Gaussians; 25 figures, 4.5 standard errors.
    sd2 = 1.5 * np.diag(np.asarray(mix))
    error = np.sqrt((sd2[:, None] * sd2[None] + wanted**2) / n)
    assert (np.abs(found - wanted) < 4.5 * error).all()
    assert (np.abs(z.mean(axis=2)) < 4.5 * np.sqrt(sd2 / n)[None]).all()


@pytest.mark.parametrize("law", [GaussianProcess("matern32"), GaussianProcess("rbf"), "product"])
def test_a_trajectory_does_not_depend_on_the_batch(law: object) -> None:
    if law == "product":
        law = Product(a=GaussianProcess("ou"), b=MarkovChain(((0.5, 0.5), (0.2, 0.8))))
    few, many = sample(law, 4, 3), sample(law, 4, 50)
    for a, b in zip(jax.tree.leaves(few), jax.tree.leaves(many), strict=True):
        assert (a == b[..., :3]).all()


def test_a_product_of_chains_is_the_chain_of_all_combinations() -> None:
    a, b = MarkovChain(((0.9, 0.1), (0.3, 0.7))), MarkovChain(((0.2, 0.5, 0.3),) * 3)
    law = Product(a=a, b=b)
    assert law.num_states == 6
    assert np.allclose(law.matrix, np.kron(a.matrix, b.matrix))
    z = sample(law, 40, 2000)
    assert np.allclose(np.bincount(z.ravel(), minlength=6) / z.size, law.stationary, atol=0.01)
    # Parts draw from keys of their own: no correlation between them.
    assert abs(np.corrcoef((z // 3).ravel(), (z % 3).ravel())[0, 1]) < 0.02


def test_a_product_of_both_sorts_has_both_values() -> None:
    law = Product(salience=MarkovChain(((0.5, 0.5),) * 2), pitch=GaussianProcess("ou"), load=GaussianProcess("rbf"))
    z = sample(law, 3, 500)
    assert z["state"].shape == (3, 500) and z["value"].shape == (3, 2, 500)
    assert abs(np.corrcoef(z["value"][0])[0, 1]) < 0.2


def test_a_continuous_chain_is_sampled_on_the_tick() -> None:
    # Two states, rates a and b per second: P(0 -> 0 after t) = (b + a exp(-(a + b) t)) / (a + b).
    chain = ContinuousMarkovChain(((-1.0, 1.0), (2.0, -2.0))).at_tick(500)
    assert np.isclose(chain.matrix[0, 0], (2 + np.exp(-1.5)) / 3, atol=1e-12)
    assert np.allclose(chain.stationary, [2 / 3, 1 / 3])


def test_laws_are_json() -> None:
    laws = [
        GaussianProcess("rbf", coregionalisation=((1.0, 0.2), (0.2, 1.0))),
        GaussianProcess(damped).at_tick(T),
        ContinuousMarkovChain(((-1.0, 1.0), (2.0, -2.0))),
        Product(a=GaussianProcess(), b=MarkovChain(((0.5, 0.5), (0.2, 0.8)))),
    ]
    for law in laws:
        assert from_dict("law", json.loads(json.dumps(to_dict(law)))) == law


def test_the_embedding_widens_until_no_eigenvalue_is_negative() -> None:
    law = GaussianProcess("rbf", timescale_ms=2000)
    sampler = _gp_kernels.embedding(law, T, 8)
    assert len(sampler.root) > 14 and np.isfinite(sampler.root).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianProcess("cubic"), "kernel: expected one of"),
        (lambda: GaussianProcess((0.5, 0.2)), "kernel: expected correlations that start with 1"),
        (lambda: GaussianProcess(timescale_ms=0), "timescale_ms"),
        (lambda: GaussianProcess(coregionalisation=((1, 2), (2, 1))), "coregionalisation: smallest eigenvalue -1"),
        (lambda: GaussianProcess(coregionalisation=((1, 2), (0, 1))), "coregionalisation: expected a symmetric"),
        (lambda: GaussianProcess(np.cos).at_tick(T), "kernel: the correlation has not died out"),
        (lambda: GaussianProcess((1.0, 0.9, 0.0)).at_tick(T).spectrum(np.zeros(1), T) and embed(), "eigenvalue"),
        (lambda: ContinuousMarkovChain(((-1.0, 2.0), (1.0, -1.0))), "generator: row 0 sums to 1"),
        (lambda: ContinuousMarkovChain(((1.0, -1.0), (1.0, -1.0))), r"generator: entry \(0, 1\)"),
        (lambda: Product(a=GaussianProcess()), "parts: expected at least two"),
    ],
)
def test_bad_laws_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def embed() -> None:
    # 1, 0.9, 0 is no covariance: its spectrum 1 + 1.8 cos w is negative at pi.
    _gp_kernels.embedding(GaussianProcess((1.0, 0.9, 0.0)), T, 8)
