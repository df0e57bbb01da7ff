"""Analyses and tools that are named by their function."""

import sys
from types import ModuleType

import pytest

from harness.analysis.analysis import NoOptions, analysis_from

POSTPONED = "from __future__ import annotations\n"
MODULE = """
import msgspec
from harness.contracts.report import Report

class Options(msgspec.Struct):
    most: int = 3

def chosen(tasks: list, options: Options) -> Report:
    return Report(sheets=())

def plain(tasks: list, options: object) -> Report:
    return Report(sheets=())
"""


@pytest.mark.parametrize("head", ["", POSTPONED])
def test_the_options_are_those_that_the_function_names_however_it_names_them(monkeypatch, head):
    module = ModuleType("made_of_text")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(head + MODULE, module.__dict__)
    about = {"name": "made", "description": "of a text"}
    assert analysis_from("made_of_text.chosen", **about).options is module.Options
    assert analysis_from("made_of_text.plain", **about).options is NoOptions
