"""One BLAS thread for small matrices: waking a second one costs more than the product, tenfold on a busy machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401 - SciPy brings a BLAS of its own, which has to be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Runs `function` with one BLAS thread and puts the number back afterwards."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
