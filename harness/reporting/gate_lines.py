"""Decided gates on a terminal. Imports rich: import this module where it is used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rich.console import Console
from rich.text import Text

from harness.reporting.comparison_tables import labels_shown, signed_interval
from harness.reporting.grid import WIDTH, result_console
from harness.reporting.text import clean_text, number, signed, wrapped_whole
from harness.scoring.comparison_document import ComparisonDocument

WORDS = {True: "holds", False: "does not hold", None: "undecided"}
STYLES = {True: "green", False: "bold red", None: "yellow"}


def print_gates(
    document: ComparisonDocument,
    console: Console | None = None,
    *,
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Print a line for each gate: whether it holds, which run minus which, interval, bound."""
    console = console or result_console()
    width = console.width if console.is_terminal else WIDTH
    labels = dict(names)
    for one in document.comparisons:
        labels |= labels_shown(one)
    console.print()
    for gate in document.gates or ():
        runs = [labels.get(run, clean_text(label)) for run, label in gate.labels.items()]
        parts = [clean_text(gate.gate), *([" − ".join(runs)] if runs else [])]
        said = [clean_text(gate.undecided or "")]
        if gate.undecided is None:
            difference = f"{signed(gate.value)} {signed_interval(gate.interval)}".rstrip()
            said = [difference, f"bound {gate.bound:+g}"]
        if gate.holds is False and gate.least_seen:
            said.append(f"{gate.users:,} people can show {number(gate.least_seen)}")
        line = f"gate {WORDS[gate.holds]}: {': '.join(parts)}: {', '.join(said)}"
        for row in wrapped_whole(line, width, "  "):
            console.print(Text(row, style=STYLES[gate.holds]), soft_wrap=True)
