"""Options from prompts and letters from replies; each case is a form that real replies take."""

from __future__ import annotations

import pytest

from envrate.bench_adapters.tvbench._letters import candidates_of, options_of, position, read_letter
from envrate.bench_adapters.tvbench._lmms_eval import their_letter

FOUR = ["a cat", "a dog", "a bird", "a fish"]


@pytest.mark.parametrize(
    ("reply", "option"),
    [
        ("ANSWER: B", 2),
        ("**ANSWER: B**", 2),
        ("ANSWER: (B)", 2),
        (r"ANSWER: \boxed{A}", 1),
        ("ANSWER: C, not D", 3),
        ("first idea: ANSWER: A\nlooking again\nANSWER: B", 2),
        ("The answer is D.", 4),
        ("B", 2),
        ("(C) a bird", 3),
        ("B. a dog", 2),
        ("A cat sits there.", 1),  # a letter that begins the reply stands for itself: the form "A cat" is ambiguous
        ("my best guess is option A", 1),
        ("option A or option B", 0),
        ("a bird", 3),
        ("a bird.", 3),
        ("ANSWER: F", 0),  # out of range
        ("", 0),
        ("the clip is too short; no option can be chosen.", 0),
        ("I see nothing", 0),  # "I" is no option, and no fall-back to capitals
        ("Because of the Dog", 0),
    ],
)
def test_letter_of_a_reply(reply: str, option: int) -> None:
    assert read_letter(reply, FOUR) == option


@pytest.mark.parametrize("options", [2, 3, 4, 6])
@pytest.mark.parametrize("form", ["{0}) text {0}", "{0}. text {0}", "({0}) text {0}", "{0}: text {0}"])
def test_options_of_a_prompt(options: int, form: str) -> None:
    lines = [form.format(chr(65 + i)) for i in range(options)]
    found = options_of("Which?\nIt is A thing. B it not.\n\n" + "\n".join(lines) + "\nAnswer with the letter only.")
    assert found == [f"text {chr(65 + i)}" for i in range(options)]


def test_options_named_but_not_listed_and_not_at_all() -> None:
    assert options_of("[LETTER] is one of A,B,C. Think.") == ["", "", ""]
    assert options_of("[LETTER] is one of A,C.") == []
    assert options_of("What happens?") == []


def test_position_of_a_candidate() -> None:
    assert position("a dog", FOUR) == 2
    assert position("a cow", FOUR) == 0
    assert position("x", ["x", "x"]) == 0  # twice: not known which


@pytest.mark.parametrize(
    ("cell", "count"),
    [
        ("['a', 'b']", 2),
        ('["a", "b", "c"]', 3),
        (["a", "b"], 2),
        ("__import__('os')", 0),
        ("[", 0),
        (None, 0),
        ("['a']", 0),
    ],
)
def test_candidates_of_a_cell(cell: object, count: int) -> None:
    assert len(candidates_of(cell)) == count


@pytest.mark.parametrize(
    ("reply", "option"),
    [("B", 2), ("b.", 2), ("a cat is on it, so B", 1), ("I think B", 0), ("it is the bird, a bird", 1), ("a dog", 1)],
)
def test_the_letter_rule_of_lmms_eval(reply: str, option: int) -> None:
    assert their_letter(reply, FOUR) == option
