"""Defaults of reclaims, apart from what carries them out: signatures show them, and reading
a signature must not load planners."""

THRESHOLD = 0.7
"""The share of the budget below which nothing is reclaimed, and to which it is."""

PROTECT = 40_000
"""Tokens of the newest tool results that are never elided."""

SAVE = 20_000
"""What eliding must save: below, the cached prefix that is lost costs more than the tokens.
Both are those of harnesses that publish theirs."""
