"""A benchmark harness for user understanding: the names that plugins use.

Each is imported at first use, so that `import harness` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.analysis.analysis import Analysis as Analysis
    from harness.analysis.analysis import DataTool as DataTool
    from harness.api import ComparisonResult as ComparisonResult
    from harness.api import Result as Result
    from harness.api import aevaluate as aevaluate
    from harness.api import compare as compare
    from harness.api import evaluate as evaluate
    from harness.api import load as load
    from harness.base.errors import DataError as DataError
    from harness.base.errors import HarnessError as HarnessError
    from harness.contracts.benchmark import Benchmark as Benchmark
    from harness.contracts.benchmark import Metric as Metric
    from harness.contracts.benchmark import Oracle as Oracle
    from harness.contracts.dataset import Dataset as Dataset
    from harness.contracts.embedder import Embedder as Embedder
    from harness.contracts.embedder import EmbedderSettings as EmbedderSettings
    from harness.contracts.identity import Identity as Identity
    from harness.contracts.judge import Classified as Classified
    from harness.contracts.judge import Classify as Classify
    from harness.contracts.judge import Select as Select
    from harness.contracts.judge import Selected as Selected
    from harness.contracts.model import CallError as CallError
    from harness.contracts.model import Message as Message
    from harness.contracts.model import Model as Model
    from harness.contracts.model import ModelSettings as ModelSettings
    from harness.contracts.model import Reply as Reply
    from harness.contracts.model import Request as Request
    from harness.contracts.model import Sampling as Sampling
    from harness.contracts.model import Usage as Usage
    from harness.contracts.outcomes import FAILURES as FAILURES
    from harness.contracts.outcomes import CallFailed as CallFailed
    from harness.contracts.outcomes import Failure as Failure
    from harness.contracts.outcomes import NoVerdict as NoVerdict
    from harness.contracts.outcomes import Parsed as Parsed
    from harness.contracts.outcomes import Unreadable as Unreadable
    from harness.contracts.records import Done as Done
    from harness.contracts.records import Record as Record
    from harness.contracts.records import Records as Records
    from harness.contracts.records import Score as Score
    from harness.contracts.stage import Calls as Calls
    from harness.contracts.stage import Desk as Desk
    from harness.contracts.stage import Item as Item
    from harness.contracts.stage import Stage as Stage
    from harness.parsing import JsonReader as JsonReader
    from harness.parsing import TextReader as TextReader
    from harness.parsing import last_object as last_object
    from harness.pipeline.simple_benchmark import simple as simple
    from harness.registry.hookspecs import hookimpl as hookimpl
    from harness.scoring.finished_task import FinishedTask as FinishedTask

_HOME = {
    "aevaluate": "harness.api",
    "compare": "harness.api",
    "evaluate": "harness.api",
    "load": "harness.api",
    "ComparisonResult": "harness.api",
    "Result": "harness.api",
    "Dataset": "harness.contracts.dataset",
    "DataError": "harness.base.errors",
    "HarnessError": "harness.base.errors",
    "hookimpl": "harness.registry.hookspecs",
    "Classified": "harness.contracts.judge",
    "Classify": "harness.contracts.judge",
    "Select": "harness.contracts.judge",
    "Selected": "harness.contracts.judge",
    "Embedder": "harness.contracts.embedder",
    "EmbedderSettings": "harness.contracts.embedder",
    "CallError": "harness.contracts.model",
    "Identity": "harness.contracts.identity",
    "Message": "harness.contracts.model",
    "Model": "harness.contracts.model",
    "ModelSettings": "harness.contracts.model",
    "Reply": "harness.contracts.model",
    "Request": "harness.contracts.model",
    "Sampling": "harness.contracts.model",
    "Usage": "harness.contracts.model",
    "FAILURES": "harness.contracts.outcomes",
    "CallFailed": "harness.contracts.outcomes",
    "Failure": "harness.contracts.outcomes",
    "NoVerdict": "harness.contracts.outcomes",
    "Parsed": "harness.contracts.outcomes",
    "Unreadable": "harness.contracts.outcomes",
    "JsonReader": "harness.parsing",
    "TextReader": "harness.parsing",
    "last_object": "harness.parsing",
    "Benchmark": "harness.contracts.benchmark",
    "Calls": "harness.contracts.stage",
    "Item": "harness.contracts.stage",
    "Metric": "harness.contracts.benchmark",
    "Oracle": "harness.contracts.benchmark",
    "Stage": "harness.contracts.stage",
    "Desk": "harness.contracts.stage",
    "simple": "harness.pipeline.simple_benchmark",
    "Analysis": "harness.analysis.analysis",
    "DataTool": "harness.analysis.analysis",
    "FinishedTask": "harness.scoring.finished_task",
    "Done": "harness.contracts.records",
    "Record": "harness.contracts.records",
    "Records": "harness.contracts.records",
    "Score": "harness.contracts.records",
}

__all__ = sorted(_HOME)  # noqa: PLE0605 - computed, so that no name is written a third time


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'harness' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOME)
