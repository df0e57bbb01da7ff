"""What is told of a file that cannot be written, word for word."""

import pytest
from inline_snapshot import snapshot

from harness.base.errors import StorageError, UsageError
from harness.contracts.report import Axis, Bars, Figure
from harness.reporting.figures import check_drawable, write_figures
from harness.reporting.label_files import refuse_taken

PLAIN = Axis(label="")
FIGURE = Figure(title="T", x=PLAIN, y=PLAIN, marks=(Bars(label="a", names=("x",), values=(1.0,)),))


@pytest.mark.parametrize("name", ["plot.gif", "plot"])
def test_a_figure_in_another_format(tmp_path, raised, name):
    assert raised(UsageError, check_drawable, tmp_path / name, found=f"DIR/{name}") == snapshot("""\
figures cannot be drawn in this format
expected: a file name that ends in .svg, .png, .pdf""")


def test_a_figure_in_a_folder_that_is_not_there(tmp_path, raised):
    place = tmp_path / "no/plot.svg"
    assert raised(UsageError, check_drawable, place, found="DIR/no") == snapshot("""\
the folder for the figures does not exist
expected: an existing folder
to do: create the folder, or choose another with --plot""")


def test_a_figure_that_cannot_be_written(tmp_path):
    (tmp_path / "plot.svg/full").mkdir(parents=True)
    with pytest.raises(StorageError) as caught:
        write_figures([FIGURE], tmp_path / "plot.svg")
    assert caught.value.hint == "make the folder writable, or choose another with --plot"


def test_files_that_somebody_may_be_labelling(tmp_path, raised):
    refuse_taken(tmp_path, ("items.csv", "key.csv"))
    (tmp_path / "key.csv").write_text("")
    given = (tmp_path, ("items.csv", "key.csv"))
    assert raised(UsageError, refuse_taken, *given, where="DIR", found="key.csv") == snapshot("""\
there are items to label here already
expected: a folder without them
to do: name another folder""")
