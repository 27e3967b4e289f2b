"""docs/rate_distortion.md names tests and functions that exist."""

from __future__ import annotations

import re
from pathlib import Path

from envrate import rd

ROOT = Path(__file__).parents[2]


def test_each_test_and_function_that_the_page_names_exists():
    page = (ROOT / "docs" / "rate_distortion.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    named = set(re.findall(r"`(?:test_\w+\.py::)?(test_\w+)`", page))
    assert len(named) > 40
    assert not {name for name in named if f"def {name}(" not in code}
    functions = set(re.findall(r"\brd\.(\w+)\(", page)) | {"Bracket", "RDPoint"}
    assert not {name for name in functions if not hasattr(rd, name)}
    for name in re.findall(r"rd\.estimators\.(\w+)", page):
        assert hasattr(rd.estimators, name)
