"""What a rendered screen says and in which colours."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate.renderers import _font

#: Longest notification, in characters.
TEXT_WIDTH = 10
#: Notifications, one per latent state; states beyond have a number.
NOTICES = (
    "ALL QUIET",
    "NEW MAIL",
    "DISK FULL",
    "LOW POWER",
    "CALL: ANNA",
    "BUILD OK",
    "LOGIN",
    "PRINTER",
    "NO SIGNAL",
    "BACKUP",
    "MEETING",
    "UPDATE",
    "CPU HOT",
    "RESTART",
)
#: Icon of each notification and its colour.
ICONS = ("dot", "mail", "disk", "warn", "bell", "gear", "bell", "disk", "warn", "disk", "bell", "gear", "warn", "gear")
#: Words in the table and in the titles of windows.
WORDS = (
    "NGINX", "CRON", "REDIS", "SSHD", "PYTHON", "CHROME", "KERNEL", "DOCKER", "POSTGR", "SYSLOG", "BASH", "GIT",
    "MAKE", "VIM", "RSYNC", "NODE", "JAVA", "QUEUE", "CACHE", "PROXY", "AUDIT", "BATCH", "INDEX", "MAILER",
)  # fmt: skip
TITLES = ("TASKS", "FILES", "REPORT", "MONITOR", "LEDGER", "NOTES", "ORDERS", "BUILDS")
WORD_WIDTH, TITLE_WIDTH = 6, 8

#: Roles of the colours in a theme.
(
    DESK,
    WINDOW,
    TEXT,
    TITLE,
    TITLE_TEXT,
    MUTED,
    TOAST,
    TOAST_TEXT,
    ACCENT,
    BAR,
    BAR_TEXT,
    RED,
    GREEN,
    AMBER,
    BLUE,
    BACK,
) = range(16)
ICON_COLOURS = (GREEN, BLUE, RED, AMBER)

_THEMES = (
    "3A6EA5 F4F4F4 202020 1C4E80 FFFFFF 808890 FFF8D8 1A1A1A CFE3F7 D8D8D8 202020 C62828 2E7D32 B26A00 1565C0 E2E2E2",
    "15202B 1E1E24 E6E6E6 33334A F0F0F0 7A7A88 2D3B55 FFFFFF 3A3A55 101014 C8C8D0 FF6B6B 7BD88F FFC857 6CB6FF 26262E",
    "002B36 073642 EEE8D5 0B5A6B FDF6E3 839496 FDF6E3 073642 0F4C5C 001F27 93A1A1 DC322F 859900 B58900 268BD2 04303B",
    "8D6E97 FFFFFF 2B1B33 6A3D7C FFFFFF 9A8AA3 FFE9F3 2B1B33 EAD8F2 E8DDF0 2B1B33 B00045 1B7F4B A05A00 2A52BE F1E6F7",
    "000000 101010 FFFFFF 003300 CCFFCC 5F9F5F 001A00 66FF66 004000 001000 66FF66 FF5050 66FF66 FFE066 66B3FF 080808",
)


@lru_cache
def themes() -> NDArray[np.uint8]:
    """(themes, 16, 3) colours."""
    return (
        np.array([[bytes.fromhex(colour) for colour in theme.split()] for theme in _THEMES])
        .view(np.uint8)
        .reshape(len(_THEMES), 16, 3)
    )


@lru_cache
def words() -> Any:
    """(words, WORD_WIDTH) glyph numbers."""
    return _font.lines(WORDS, WORD_WIDTH)


@lru_cache
def titles() -> Any:
    """(titles, TITLE_WIDTH) glyph numbers."""
    return _font.lines(TITLES, TITLE_WIDTH)


def notice(state: int) -> str:
    """The notification that a state shows."""
    return NOTICES[state] if state < len(NOTICES) else f"EVENT {state}"


@lru_cache
def notices(states: int) -> Any:
    """(states, TEXT_WIDTH) glyph numbers of the notifications."""
    return _font.lines([notice(k) for k in range(states)], TEXT_WIDTH)


@lru_cache
def icons(states: int) -> tuple[Any, Any]:
    """(states,) glyph numbers of the icons and their colours."""
    glyph = np.array([_font.INDEX[ICONS[k % len(ICONS)]] for k in range(states)], dtype=np.int32)
    return glyph, np.array([ICON_COLOURS[k % len(ICON_COLOURS)] for k in range(states)], dtype=np.int32)
