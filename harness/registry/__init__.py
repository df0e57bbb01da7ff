"""The installed plugins and everything that they registered."""

from harness.registry.hookspecs import ANY_BENCHMARK as ANY_BENCHMARK
from harness.registry.hookspecs import AnalysisRegistration as AnalysisRegistration
from harness.registry.hookspecs import DataToolRegistration as DataToolRegistration
from harness.registry.hookspecs import EmbedderRegistration as EmbedderRegistration
from harness.registry.hookspecs import JudgeRegistration as JudgeRegistration
from harness.registry.hookspecs import MetricRegistration as MetricRegistration
from harness.registry.hookspecs import ModelRegistration as ModelRegistration
from harness.registry.hookspecs import Origin as Origin
from harness.registry.hookspecs import Registration as Registration
from harness.registry.hookspecs import RespondentRegistration as RespondentRegistration
from harness.registry.registry import CHOSEN as CHOSEN
from harness.registry.registry import GROUP as GROUP
from harness.registry.registry import BrokenPlugin as BrokenPlugin
from harness.registry.registry import LoadedPlugin as LoadedPlugin
from harness.registry.registry import Plugins as Plugins
from harness.registry.registry import Registry as Registry
from harness.registry.registry import load_plugins as load_plugins
from harness.registry.registry import made as made
from harness.registry.registry import plugins_from as plugins_from
from harness.registry.registry import reset as reset
