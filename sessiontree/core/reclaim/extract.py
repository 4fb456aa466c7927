"""Extracts: decisions, preferences and themes of old turns, found by word lists.

No model is asked, so this is there when a request is too large already; and it knows
nothing, so it is told to be an extract wherever it is shown. What is found are sentences as
they were said, each on a line of its own, in quotes: nothing that was said can pass for a
line of ours. What tools returned is not looked at.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

from sessiontree.core.message import text_of
from sessiontree.core.reclaim.transcript import Said
from sessiontree.core.reclaim.words import WORDS, Words

Json = dict[str, Any]

LABEL = (
    "[Extract of {messages} earlier messages: sentences and words picked by word lists, not by "
    "a model. It is no summary, and what matters may be missing.]"
)
MOST = 8
"""Decisions, preferences and themes that are kept at most: the newest, and the commonest."""
READ = 20_000
"""Characters of one message that are looked at: longer ones are pasted."""
SHOWN = 200
"""Characters of a sentence that are shown."""
LEAST = 2
"""Messages that a theme comes in at least."""
LONGEST = 6
"""Ideographs of one theme."""
WORD = 40
"""Letters of a word that is a theme, at most."""
HELD = 200_000
"""Themes that are counted at one time."""

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f\uff1b])|\n")
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_HAN = r"\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_KANA = r"\u3040-\u30ff"
_IDEOGRAPH = re.compile(f"[{_HAN}]")
_UNSPACED = re.compile(f"[{_HAN}{_KANA}]")
_LETTER = rf"[^\W\d_{_HAN}{_KANA}]"
_RUN = re.compile(
    rf"[{_HAN}]+|[\u30a1-\u30fa\u30fc]{{2,}}|{_LETTER}+(?:['-]{_LETTER}+)*|[^\w\s]|\n"
)
"""What themes are made of: ideographs, katakana, words; and what parts two words."""
_FENCE = "```"


@dataclass(frozen=True, slots=True)
class Extract:
    """What was found. Sentences are as they were said, but for blanks and length."""

    decisions: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    """Of the user."""
    themes: tuple[str, ...] = ()
    messages: int = 0
    """How many were looked at."""

    @property
    def text(self) -> str:
        """The note, which begins by saying what it is; "" when nothing was found."""
        parts = [
            _listed("Decided", self.decisions),
            _listed("The user wants", self.preferences),
            f"Themes: {', '.join(self.themes)}" if self.themes else "",
        ]
        found = "\n".join(filter(None, parts))
        return f"{LABEL.format(messages=self.messages)}\n{found}" if found else ""

    def __str__(self) -> str:
        return self.text

    @property
    def mark(self) -> Json:
        """The mark to append; its ``ref_id`` is the first message that stays as it is."""
        return {
            "role": "mark",
            "kind": "extract",
            "text": self.text,
            "decisions": list(self.decisions),
            "preferences": list(self.preferences),
            "themes": list(self.themes),
            "messages": self.messages,
        }


def of_mark(mark: Mapping[str, Any]) -> Extract:
    """The extract that a mark keeps; what is no text in it is left out."""
    count = mark.get("messages")
    return Extract(
        *(_strings(mark.get(name)) for name in ("decisions", "preferences", "themes")),
        messages=count if type(count) is int and count > 0 else 0,
    )


def plan(
    messages: Iterable[Said],
    *,
    words: Mapping[str, Words] = WORDS,
    before: Extract | None = None,
    most: int = MOST,
) -> Extract:
    """The extract of ``messages``, oldest first.

    ``words`` are the lists by language; ``before`` is the extract that this one replaces:
    what it holds comes first.
    """
    old = before or Extract()
    cues = _Cues(words)
    found = _Found(list(old.decisions), list(old.preferences), _Themes(cues.stops), old.messages)
    for message in messages:
        if message.role in ("user", "assistant", "tool"):
            found.add(_prose(text_of(message.parts)), message.role != "assistant", cues)
    return Extract(
        _newest(found.decisions, most),
        _newest(found.preferences, most),
        _merged(old.themes, found.themes.best(most), most),
        found.messages,
    )


@dataclass(slots=True)
class _Found:
    """What was found so far, oldest first."""

    decisions: list[str]
    preferences: list[str]
    themes: _Themes
    messages: int

    def add(self, text: str, is_of_user: bool, cues: _Cues) -> None:
        self.messages += 1
        self.themes.add(text)
        for sentence in _sentences(text):
            decides, prefers = cues.found_in(sentence)
            if decides:
                self.decisions.append(sentence)
            elif prefers and is_of_user:
                self.preferences.append(sentence)


# --- Sentences ----------------------------------------------------------------------------


def _prose(text: str) -> str:
    """Text without blocks of code, quotes with straight apostrophes."""
    pieces = unicodedata.normalize("NFC", text[:READ]).split(_FENCE)
    return "\n".join(pieces[::2]).replace("\u2019", "'")


def _sentences(text: str) -> Iterator[str]:
    """Each on one line, without what cannot be seen."""
    for piece in _SENTENCE.split(text):
        sentence = _one_line(piece.replace("**", "")).lstrip("-*#> ")
        if len(sentence) > 3:
            yield sentence if len(sentence) <= SHOWN else f"{sentence[:SHOWN].rstrip()}…"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return " ".join("".join(filter(str.isprintable, line)).split())


class _Cues:
    """The phrases of all languages, made ready for looking up."""

    def __init__(self, words: Mapping[str, Words]) -> None:
        lists = list(words.values())
        self.decisions = _Phrases(phrase for each in lists for phrase in each.decisions)
        self.preferences = _Phrases(phrase for each in lists for phrase in each.preferences)
        self.stops = [each.stop for each in lists]

    def found_in(self, sentence: str) -> tuple[bool, bool]:
        """Whether the sentence tells of a decision, and of a preference. A question tells
        of neither."""
        if sentence.endswith(("?", "\uff1f")):
            return False, False
        low = sentence.lower()
        words = _WORD.findall(low)
        return self.decisions.are_in(low, words), self.preferences.are_in(low, words)


class _Phrases:
    """Phrases by their first word, and those of languages that put no blanks."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self.by_first: dict[str, list[list[str]]] = {}
        self.unspaced: list[str] = []
        for phrase in phrases:
            words = _WORD.findall(phrase.lower())
            if _UNSPACED.search(phrase):
                self.unspaced.append(phrase)
            elif words:
                self.by_first.setdefault(words[0], []).append(words)

    def are_in(self, text: str, words: list[str]) -> bool:
        for at, word in enumerate(words):
            for phrase in self.by_first.get(word, ()):
                if words[at : at + len(phrase)] == phrase:
                    return True
        return not text.isascii() and any(phrase in text for phrase in self.unspaced)


def _newest(sentences: list[str], most: int) -> tuple[str, ...]:
    """The last ``most``, each once: where it was said last."""
    once: dict[str, str] = {}
    for sentence in reversed(sentences):
        once.setdefault(sentence.casefold(), sentence)
    return tuple(list(once.values())[: max(0, most)][::-1])


# --- Themes -------------------------------------------------------------------------------


class _Themes:
    """Words, pairs of words and runs of ideographs, and in how many messages they come."""

    def __init__(self, stops: Sequence[frozenset[str]]) -> None:
        self.stops = stops
        self.all_stops = frozenset(chain.from_iterable(stops))
        self.counts: Counter[str] = Counter()
        self.shown: dict[str, str] = {}

    def add(self, text: str) -> None:
        """One message: each theme counts once in it."""
        found: dict[str, str] = {}
        last = ""
        runs: list[str] = _RUN.findall(text)
        stop = self._stop_of(runs)
        for run in runs:
            if _IDEOGRAPH.match(run):
                found.update((gram, gram) for gram in self._grams(run))
                last = ""
            elif 2 < len(run) <= WORD and run.casefold() not in stop:
                found.setdefault(run.casefold(), run)
                if last:
                    pair = f"{last} {run}"
                    found.setdefault(pair.casefold(), pair)
                last = run
            else:
                last = ""
        self.counts.update(found.keys())
        self.shown = found | self.shown
        self._forget()

    def _forget(self) -> None:
        """Let go of the rarest when there are too many to hold."""
        rare = 1
        while len(self.counts) > HELD:
            self.counts = Counter({k: n for k, n in self.counts.items() if n > rare})
            self.shown = {key: self.shown[key] for key in self.counts}
            rare *= 2

    def _stop_of(self, runs: list[str]) -> frozenset[str]:
        """The words without a theme in the language of a message, which is the one that has
        the most of them there: a van is nothing in Dutch only."""
        words = [run.casefold() for run in runs]
        counts = [sum(map(stop.__contains__, words)) for stop in self.stops]
        most = max(counts, default=0)
        best = [stop for stop, count in zip(self.stops, counts, strict=True) if count == most]
        return best[0] if len(best) == 1 else self.all_stops

    def _grams(self, run: str) -> Iterator[str]:
        """Two or more ideographs in a row, none of which stands for grammar."""
        start = 0
        for end in range(len(run) + 1):
            if end < len(run) and run[end] not in self.all_stops:
                continue
            piece = run[start:end]
            for size in range(2, LONGEST + 1):
                yield from (piece[at : at + size] for at in range(len(piece) - size + 1))
            start = end + 1

    def best(self, most: int) -> list[str]:
        """The commonest; of those that are part of another as common, only the longest."""
        common = [item for item in self.counts.items() if item[1] >= LEAST]
        ranked = sorted(common, key=lambda item: (-item[1], -len(item[0]), item[0]))
        chosen: list[tuple[str, int]] = []
        for key, count in ranked:
            if len(chosen) >= most:
                break
            if not any(count == n and _is_part(key, other) for other, n in chosen):
                chosen.append((key, count))
        return [self.shown[key] for key, _ in chosen]


def _is_part(theme: str, other: str) -> bool:
    if _IDEOGRAPH.match(theme):
        return theme in other
    return f" {theme} " in f" {other} "


def _merged(old: Sequence[str], new: Sequence[str], most: int) -> tuple[str, ...]:
    """New and old themes, each once; the new ones leave room for half as many old ones."""
    first = new[: max(most - len(old), most - most // 2)]
    return tuple(dict.fromkeys([*first, *old, *new]))[: max(0, most)]


def _listed(title: str, sentences: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f'- "{each}"' for each in sentences)]) if sentences else ""


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    texts = [each for each in cast("list[object]", value) if isinstance(each, str)]
    return tuple(map(_one_line, texts))
