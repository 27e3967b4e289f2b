"""A neural estimate of mutual information (Donsker and Varadhan), trained and evaluated on different samples."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd.estimators._ksg import _columns
from envrate.rd.estimators._types import Estimate

FloatArray = NDArray[np.float64]

#: Shuffles of y in the denominator of the evaluation.
EVALUATION_SHUFFLES = 16


def neural(
    x: ArrayLike, y: ArrayLike, *, hidden: int = 64, steps: int = 1500, batch: int = 512, seed: int = 0
) -> Estimate:
    """Mutual information in bits by a trained critic, after Belghazi et al. 2018 (MINE).

    A network T(x, y) maximises E T - log E exp T' on half of the samples, T' with y shuffled, and the same expression
    is evaluated on the other half. Its population value is a lower bound, but the logarithm of a mean over samples is
    not: the number is an **estimate and never a bound**, and grows unreliable as the information nears the logarithm
    of the number of samples (McAllester and Stratos 2020). Nothing is clipped.

    Args:
        x: (N,) or (N, dx) samples; columns are standardised.
        y: (N,) or (N, dy) samples.
        hidden: width of the two hidden layers.
        steps: of Adam.
        batch: samples per step.
        seed: of the split, the weights and the batches.

    Raises:
        ValueError: lengths that do not match, fewer than 64 samples.
        ImportError: without the extra `neural` (optax).
    """
    a, b = _columns("x", x), _columns("y", y)
    n = len(a)
    if len(b) != n:
        raise ValueError(f"y: expected {n} samples, as many as x, got {len(b)}")
    if n < 64:
        raise ValueError(f"x: expected at least 64 samples, got {n}")
    hidden, steps = _checks.integer("hidden", hidden, 1), _checks.integer("steps", steps, 1)
    batch = min(_checks.integer("batch", batch, 2), n // 2)
    try:
        import jax
        import jax.numpy as jnp
        import optax
    except ImportError as error:
        raise ImportError("the neural estimate needs optax: pip install 'envrate[neural]'") from error

    rng = np.random.default_rng(seed)
    order = rng.permutation(n)

    def standard(columns: FloatArray) -> FloatArray:
        return np.asarray((columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-300))

    both = [jnp.asarray(standard(columns)[order], dtype=jnp.float32) for columns in (a, b)]
    (train_x, test_x), (train_y, test_y) = ((c[: n // 2], c[n // 2 :]) for c in both)
    sizes = [a.shape[1] + b.shape[1], hidden, hidden, 1]
    weights = [
        (
            jnp.asarray(rng.normal(size=(i, o)) * math.sqrt(2.0 / i), dtype=jnp.float32),
            jnp.zeros((1, o), dtype=jnp.float32),
        )
        for i, o in zip(sizes[:-1], sizes[1:], strict=True)
    ]

    def critic(parameters, u, v):  # type: ignore[no-untyped-def]
        layer = jnp.concatenate([u, v], axis=1)
        for index, (w, bias) in enumerate(parameters):
            layer = layer @ w + bias
            if index < len(parameters) - 1:
                layer = jax.nn.elu(layer)
        return layer[:, 0]

    def bound(parameters, u, v, shuffles):  # type: ignore[no-untyped-def]
        """E T - log E exp T', in nats; `shuffles` (s, n) orders of y."""
        joint = critic(parameters, u, v).mean()  # type: ignore[no-untyped-call]
        product = jnp.stack([critic(parameters, u, v[s]) for s in shuffles])  # type: ignore[no-untyped-call]
        return joint - (jax.nn.logsumexp(product) - math.log(product.size))

    optimiser = optax.adam(1e-3)

    @jax.jit
    def train(parameters, state, key):  # type: ignore[no-untyped-def]
        def step(carry, key):  # type: ignore[no-untyped-def]
            parameters, state = carry
            pick, *keys = jax.random.split(key, 5)
            rows = jax.random.randint(pick, (batch,), 0, len(train_x))
            shuffles = jnp.stack([jax.random.permutation(k, batch) for k in keys])
            gradient = jax.grad(lambda p: -bound(p, train_x[rows], train_y[rows], shuffles))(parameters)  # type: ignore[no-untyped-call]
            updates, state = optimiser.update(gradient, state)
            return (optax.apply_updates(parameters, updates), state), None

        return jax.lax.scan(step, (parameters, state), jax.random.split(key, steps))[0]

    # optax raises a float to an integer power, which strict promotion of types refuses.
    with jax.numpy_dtype_promotion("standard"):
        parameters, _ = train(weights, optimiser.init(weights), jax.random.key(seed))
    # Shifts of the held-out half: no sample is paired with itself.
    held = len(test_x)
    shifts = rng.permutation(np.arange(1, held))[:EVALUATION_SHUFFLES]
    shuffles = jnp.asarray((np.arange(held) + shifts[:, None]) % held)
    value = float(bound(parameters, test_x, test_y, shuffles))  # type: ignore[no-untyped-call]
    return Estimate(value / math.log(2.0), "neural Donsker-Varadhan on held-out samples: an estimate, not a bound", n)
