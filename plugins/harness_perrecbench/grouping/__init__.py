"""Tools for review logs: one builds groups of users in the published layout, one describes them."""

from harness import DataTool
from harness_perrecbench.grouping import build, describe
from harness_perrecbench.grouping.settings import Settings

__all__ = ["DESCRIBE_TOOL", "GROUPS_TOOL"]

GROUPS_TOOL = DataTool(
    name="perrec-groups",
    description="build user groups from review logs",
    run=build.run,
    options=Settings,
)
DESCRIBE_TOOL = DataTool(
    name="perrec-describe",
    description="tell what a folder of groups holds",
    run=describe.run,
    options=describe.Options,
)
