"""A benchmark harness for user understanding: the names a plugin author needs.

Everything is imported at first use, so that `import harness` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api import aevaluate as aevaluate
    from harness.api import evaluate as evaluate
    from harness.data import Dataset as Dataset
    from harness.errors import DataError as DataError
    from harness.errors import HarnessError as HarnessError
    from harness.hookspecs import hookimpl as hookimpl
    from harness.judging import Classified as Classified
    from harness.judging import Classify as Classify
    from harness.judging import Select as Select
    from harness.judging import Selected as Selected
    from harness.models import CallError as CallError
    from harness.models import Identity as Identity
    from harness.models import Message as Message
    from harness.models import Model as Model
    from harness.models import ModelSettings as ModelSettings
    from harness.models import Reply as Reply
    from harness.models import Request as Request
    from harness.models import Sampling as Sampling
    from harness.models import Usage as Usage
    from harness.outcomes import FAILURES as FAILURES
    from harness.outcomes import CallFailed as CallFailed
    from harness.outcomes import Failure as Failure
    from harness.outcomes import NoVerdict as NoVerdict
    from harness.outcomes import Parsed as Parsed
    from harness.outcomes import Unreadable as Unreadable
    from harness.parsing import JsonReader as JsonReader
    from harness.parsing import TextReader as TextReader
    from harness.parsing import last_object as last_object
    from harness.pipeline.benchmark import Benchmark as Benchmark
    from harness.pipeline.benchmark import Calls as Calls
    from harness.pipeline.benchmark import Item as Item
    from harness.pipeline.benchmark import Metric as Metric
    from harness.pipeline.benchmark import Oracle as Oracle
    from harness.pipeline.benchmark import Stage as Stage
    from harness.pipeline.desk import Desk as Desk
    from harness.pipeline.simple import simple as simple
    from harness.pipeline.tools import Analysis as Analysis
    from harness.pipeline.tools import DataTool as DataTool
    from harness.results.kept import KeptTask as KeptTask
    from harness.results.records import Done as Done
    from harness.results.records import Record as Record
    from harness.results.records import Records as Records
    from harness.results.records import Score as Score

_HOME = {
    "aevaluate": "harness.api",
    "evaluate": "harness.api",
    "Dataset": "harness.data",
    "DataError": "harness.errors",
    "HarnessError": "harness.errors",
    "hookimpl": "harness.hookspecs",
    "Classified": "harness.judging",
    "Classify": "harness.judging",
    "Select": "harness.judging",
    "Selected": "harness.judging",
    "CallError": "harness.models",
    "Identity": "harness.models",
    "Message": "harness.models",
    "Model": "harness.models",
    "ModelSettings": "harness.models",
    "Reply": "harness.models",
    "Request": "harness.models",
    "Sampling": "harness.models",
    "Usage": "harness.models",
    "FAILURES": "harness.outcomes",
    "CallFailed": "harness.outcomes",
    "Failure": "harness.outcomes",
    "NoVerdict": "harness.outcomes",
    "Parsed": "harness.outcomes",
    "Unreadable": "harness.outcomes",
    "JsonReader": "harness.parsing",
    "TextReader": "harness.parsing",
    "last_object": "harness.parsing",
    "Benchmark": "harness.pipeline.benchmark",
    "Calls": "harness.pipeline.benchmark",
    "Item": "harness.pipeline.benchmark",
    "Metric": "harness.pipeline.benchmark",
    "Oracle": "harness.pipeline.benchmark",
    "Stage": "harness.pipeline.benchmark",
    "Desk": "harness.pipeline.desk",
    "simple": "harness.pipeline.simple",
    "Analysis": "harness.pipeline.tools",
    "DataTool": "harness.pipeline.tools",
    "KeptTask": "harness.results.kept",
    "Done": "harness.results.records",
    "Record": "harness.results.records",
    "Records": "harness.results.records",
    "Score": "harness.results.records",
}

__all__ = sorted(_HOME)  # noqa: PLE0605 - computed, so that no name is written a third time


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'harness' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOME)
