"""Every number that is printed has a page that says what it means, how it can mislead and where it comes from."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from envrate import scorers

FOLDER = Path(__file__).parents[2] / "docs" / "numbers"
PAGES = sorted(p for p in FOLDER.glob("*.md") if p.name != "README.md")
#: Field of a result -> the page that explains it.
PAGE_OF = {
    "credited": "credited-throughput", "credited_low": "intervals", "credited_high": "intervals",
    "gap": "gap-and-keeps-up", "gap_low": "intervals", "gap_high": "intervals", "keeps_up": "gap-and-keeps-up",
    "detection": "detection-and-identification", "identification": "detection-and-identification",
    "severity": "severity-and-rate-equivalent", "severity_low": "intervals", "severity_high": "intervals",
    "rate_equivalent": "severity-and-rate-equivalent", "raw": "frontier", "events": "gap-and-keeps-up",
    "censored": "restraint", "decoded": "split", "ideal": "split", "link": "split", "perception": "split",
    "decision": "split", "prediction": "prediction", "link_information": "link-information",
    "value": "retention", "chance": "retention", "asked": "retention", "right": "retention",
    "left_out": "retention", "low": "intervals", "high": "intervals", "rate": "information",
    "memoryless": "information",
    "one_step": "information", "kendall": "transfer", "spearman": "transfer", "strength": "bradley-terry",
    "elo": "bradley-terry", "wolpaw": "neighbouring-rates", "achieved": "neighbouring-rates",
    "difference": "comparison", "severity_difference": "comparison",
}  # fmt: skip
RESULTS = (scorers.Point, scorers.SplitPoint, scorers.Retention, scorers.Information, scorers.Difference)
#: What is no number.
TEXTS = {"latency_ms", "reading", "reason", "verdict", "channel", "required", "ticks", "a", "b"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_has_its_three_parts_and_its_links_lead_somewhere(page):
    text = page.read_text()
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["What it means", "How it can mislead", "Source"]
    parts = re.split(r"^## .+$", text, flags=re.MULTILINE)
    assert all(len(part.split()) >= 2 for part in parts)
    for target in re.findall(r"\]\(([^)#]+\.md)\)", text):
        assert (FOLDER / target).exists(), target


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: r.__name__)
def test_every_number_of_a_result_has_a_page(result):
    for field in dataclasses.fields(result):
        if field.name not in TEXTS:
            assert (FOLDER / f"{PAGE_OF[field.name]}.md").exists(), field.name


def test_the_index_lists_every_page():
    index = (FOLDER / "README.md").read_text()
    assert {p.name for p in PAGES} == set(re.findall(r"\]\(([^)]+)\)", index))
