"""Times as text; they are integers of microseconds since 1970, UTC, and any integer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(microseconds: int) -> str:
    """ISO 8601 with milliseconds; beyond the calendar, the integer with its unit."""
    try:
        time = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} µs"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def minute(microseconds: int) -> str:
    """For people: 2026-03-01 09:30 UTC."""
    text = iso(microseconds)
    return f"{text[:10]} {text[11:16]} UTC" if text.endswith("Z") else text
