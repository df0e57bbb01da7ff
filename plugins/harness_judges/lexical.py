"""A deterministic judge that compares words without a model, for demos and tests."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.base.errors import UsageError
from harness.contracts.judge import (
    Ask,
    Classified,
    Classify,
    Judge,
    JudgeParts,
    Question,
    Select,
    Selected,
    Verdict,
)
from harness.contracts.outcomes import NoVerdict

RUNG = "rule"
SHARE = 0.5
WORD = re.compile(r"[^\W_]+")
EMPTY_WORDS = frozenset([
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "how", "in", "is", "it", "its",
    "of", "on", "or", "that", "the", "this", "to", "was", "what", "with", "you", "your",
])  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LexicalJudge:
    """Selects the options that hold at least `share` of the subject's words."""

    name: str
    share: float
    version: int = 1
    models: tuple[()] = ()

    async def judge(self, question: Question, _ask: Ask) -> Verdict | NoVerdict:
        """The verdict by word overlap; NoVerdict if the subject has no words to compare."""
        if isinstance(question, Select):
            return select(question, self.share)
        return classify(question)


def make(parts: JudgeParts) -> Judge:
    """The judge for these arguments; a share other than the default is part of its name."""
    for key in parts.args:
        if key != "share":
            raise UsageError(
                f"the judge 'lexical' has no argument {key!r}",
                found=key,
                expected="share=NUMBER",
            )
    text = parts.args.get("share")
    if text is None:
        return LexicalJudge(name="lexical", share=SHARE)
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise UsageError(
            "the share of words that an option must hold cannot be used",
            where="the judge 'lexical'",
            found=f"share={text}",
            expected="a number above 0, at most 1",
        )
    return LexicalJudge(name=f"lexical:share={share:g}", share=share)


def select(question: Select, share: float) -> Selected | NoVerdict:
    """The options with enough of the subject's words, the one with the most words first."""
    wanted = stems(question.subject)
    if not wanted:
        return NoVerdict("no_words", f"nothing to compare in {question.subject[:80]!r}")
    held = [len(wanted & stems(option)) for option in question.options]
    enough = [place for place, count in enumerate(held) if count >= share * len(wanted)]
    enough.sort(key=lambda place: (-held[place], place))
    return Selected(chosen=tuple(enough[: question.at_most]), rung=RUNG)


def classify(question: Classify) -> Classified:
    """For each text, the label with the largest part of its words in the text; None without one."""
    labels = [(label, stems(label)) for label in question.labels]
    return Classified(
        labels=tuple(_nearest(stems(text), labels) for text in question.texts), rung=RUNG
    )


def stems(text: str) -> frozenset[str]:
    """The content words of a text, in lower case and singular."""
    words = (word for word in WORD.findall(text.casefold()) if word not in EMPTY_WORDS)
    return frozenset(_stem(word) for word in words)


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _nearest(words: frozenset[str], labels: list[tuple[str, frozenset[str]]]) -> str | None:
    best, most = None, 0.0
    for label, wanted in labels:
        part = len(words & wanted) / len(wanted) if wanted else 0.0
        if part > most:
            best, most = label, part
    return best
