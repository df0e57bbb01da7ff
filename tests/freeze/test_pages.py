"""A page of help gives the same rows in any layout."""

from freeze.pages import rows_of_page

BY_ARGPARSE = """\
usage: harness show [-h] [--seed N]
                    [RUN]

List the runs.

positional arguments:
  RUN                   the folder

options:
  -h, --help            show this help
                        message and exit
  --output_path DIR, --output-path DIR
                        where runs go (runs)
"""
BY_CLICK = """\
Usage: harness show [OPTIONS] [RUN]

  List the runs.

Positional arguments:
  RUN  the folder

Options:
  --output-path, --output_path DIR  where runs
                                    go  [default: runs]
  -h, --help                        show this help message and exit
"""


def test_a_page_gives_the_same_rows_in_either_layout() -> None:
    by_argparse, by_click = rows_of_page(BY_ARGPARSE), rows_of_page(BY_CLICK)
    assert sorted(map(str, by_argparse)) == sorted(map(str, by_click))
    assert by_argparse[2] == {
        "option": "--output-path --output_path",
        "takes": "DIR",
        "section": "options",
        "help": "where runs go (runs)",
        "default": "runs",
    }
    assert len(by_argparse) == 4
