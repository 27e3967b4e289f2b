"""Classes of consequences and the frequencies on them."""

from __future__ import annotations

import numpy as np
import pytest

from envrate import tasks
from envrate.scorers import classes_for, profile
from envrate.task import Severity
from envrate.trace import Header


def table(size: int, cells: dict[tuple[int, int], float]) -> np.ndarray:
    """(A, A + 2) conditional frequencies from {(required, column): share}."""
    out = np.zeros((size, size + 2))
    for (a, column), share in cells.items():
        out[a, column] = share
    return out


def test_binary_source_has_miss_and_over():
    classes = profile([0.5, 0.5])
    assert classes.matrix.tolist() == [[-1, 0], [1, -1]] and classes.names == ("over", "miss(1)")
    found = classes.frequencies(table(2, {(0, 0): 0.9, (0, 1): 0.1, (1, 1): 0.6, (1, 0): 0.4}))
    np.testing.assert_allclose(found, [0.05, 0.2])


def test_the_laws_pmf_stands_outside_and_conditional_frequencies_inside():
    found = profile([0.9, 0.1]).frequencies(table(2, {(0, 1): 0.5, (0, 0): 0.5, (1, 0): 0.25, (1, 1): 0.75}))
    np.testing.assert_allclose(found, [0.9 * 0.5, 0.1 * 0.25])


def test_cells_of_one_consequence_are_split_where_severities_differ():
    weight = Severity(miss=(1.0, 2.0), wrong=((0.0, 3.0), (4.0, 0.0)), over=(5.0, 6.0)).matrix(3)
    classes = profile([0.6, 0.2, 0.2], weight)
    assert classes.names == ("over at 5", "over at 6", "miss(1)", "wrong(1)", "miss(2)", "wrong(2)")
    assert classes.matrix.tolist() == [[-1, 0, 1], [2, -1, 3], [4, 5, -1]]
    assert classes.severities.tolist() == [5, 6, 1, 3, 2, 4]
    together = profile([0.6, 0.2, 0.2], Severity(miss=1, wrong=1, over=1).matrix(3))
    assert together.names == ("over", "miss(1)", "wrong(1)", "miss(2)", "wrong(2)")


def test_exchangeable_symbols_share_their_classes():
    classes = profile([0.0, 0.25, 0.25, 0.25, 0.25], exchangeable=[(1, 2, 3)])
    assert classes.names == ("over", "miss(1|2|3)", "wrong(1|2|3)", "miss(4)", "wrong(4)")
    given = table(5, {(1, 2): 0.4, (1, 1): 0.6, (2, 0): 0.2, (2, 2): 0.8, (3, 3): 1.0, (4, 1): 0.5, (4, 4): 0.5})
    np.testing.assert_allclose(classes.frequencies(given), [0, 0.05, 0.1, 0, 0.125])


def test_wrong_and_unknown_which_counts_as_the_worst_wrong_response():
    weight = Severity(wrong=((0.0, 1.0, 7.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0))).matrix(4)
    classes = profile([0.25] * 4, weight)
    found = classes.frequencies(table(4, {(1, 4): 1.0, (0, 4): 0.5, (0, 0): 0.5}))
    assert found[classes.names.index("wrong(1) at 7")] == 0.25
    assert found[classes.names.index("over")] == 0.125
    two = profile([0.5, 0.5])
    assert two.frequencies(table(2, {(1, 2): 0.5, (1, 1): 0.5}))[two.names.index("miss(1)")] == 0.25


def test_e_is_bounded_in_common():
    classes = profile([0.7, 0.2, 0.1], resolved=True)
    assert classes.matrix.shape == (3, 4) and [n for n in classes.names if n[0] == "e"] == ["e(0)", "e(1)", "e(2)"]
    given = table(3, {(0, 4): 0.1, (0, 0): 0.9, (1, 4): 0.4, (1, 1): 0.6, (2, 2): 1.0})
    found = classes.frequencies(given)
    np.testing.assert_allclose(found[classes.common], [0.7 * 0.4, 0.2 * 0.4, 0.1 * 0.4])
    assert classes.severities[classes.common].tolist() == [0, 0, 0]


def test_symbols_of_probability_zero_may_lack_frequencies():
    classes = profile([0.0, 0.5, 0.5], resolved=True)
    given = table(3, {(1, 1): 1.0, (2, 2): 1.0})
    given[0] = np.nan
    assert (classes.frequencies(given) == 0).all()
    given[1] = np.nan
    assert np.isnan(classes.frequencies(given)).any()


def test_merging_keeps_alert_or_not_and_the_largest_share_of_e():
    classes = profile([0.6, 0.3, 0.1], resolved=True)
    given = table(3, {(0, 2): 0.1, (0, 0): 0.9, (1, 0): 0.2, (1, 2): 0.8, (2, 0): 0.5, (2, 2): 0.2, (2, 4): 0.3})
    merged, small = classes.merged(), classes.merge(given)
    np.testing.assert_allclose(merged.pmf, [0.6, 0.4])
    found = dict(zip(merged.names, merged.frequencies(small), strict=True))
    expected = {"miss": 0.3 * 0.2 + 0.1 * 0.5, "over": 0.06, "e(0)": 0.6 * 0.3, "e(alert)": 0.4 * 0.3}
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("name", tasks.names())
def test_every_preset_has_a_handled_outcome_for_each_symbol(name):
    task = tasks.get(name)
    if task.is_tracking:
        pytest.skip("real-valued responses have no classes")
    for resolved in (False, True):
        classes = classes_for(Header.for_task(task), resolved=resolved)
        assert ((classes.matrix == -1).sum(axis=1) == 1).all()
        assert (np.diag(classes.matrix) == -1).all()
        assert set(range(classes.num_classes)) <= set(classes.matrix.ravel().tolist())
