"""The plugins there are and what they registered."""

from harness.plugin_manager.collecting import check_command as check_command
from harness.plugin_manager.loading import CHOSEN as CHOSEN
from harness.plugin_manager.loading import GROUP as GROUP
from harness.plugin_manager.loading import load_plugins as load_plugins
from harness.plugin_manager.loading import plugins_from as plugins_from
from harness.plugin_manager.loading import reset as reset
from harness.plugin_manager.offers import BrokenPlugin as BrokenPlugin
from harness.plugin_manager.offers import LoadedPlugin as LoadedPlugin
from harness.plugin_manager.offers import Plugins as Plugins
from harness.plugin_manager.offers import Source as Source
from harness.plugin_manager.registrations import AnalysisRegistration as AnalysisRegistration
from harness.plugin_manager.registrations import DataToolRegistration as DataToolRegistration
from harness.plugin_manager.registrations import JudgeRegistration as JudgeRegistration
from harness.plugin_manager.registrations import ModelRegistration as ModelRegistration
from harness.plugin_manager.registrations import Origin as Origin
from harness.plugin_manager.registrations import Registration as Registration
from harness.plugin_manager.registrations import Registries as Registries
from harness.plugin_manager.registrations import Registry as Registry
from harness.plugin_manager.registrations import RespondentRegistration as RespondentRegistration
