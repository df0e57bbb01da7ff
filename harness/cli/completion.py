"""`harness completion SHELL`: the script by which a shell completes the command."""

from __future__ import annotations

import argparse
import sys
from typing import Any

ASKED = "_complete"
"""The command that the scripts ask; it is not for people, so no help names it."""

BASH = """\
# bash completion of harness
_harness() {
    local IFS=$'\\n'
    COMPREPLY=($(harness _complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
    case "${COMPREPLY[0]-}" in
        *= | *, | *:) compopt -o nospace ;;
    esac
}
complete -o default -o nosort -F _harness harness
"""

ZSH = """\
#compdef harness
_harness() {
    local -a found
    found=(${(f)"$(harness _complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then
        compadd -Q -- $found
    else
        _files
    fi
}
if [[ $funcstack[1] == _harness ]]; then
    _harness "$@"
else
    compdef _harness harness
fi
"""

FISH = """\
# fish completion of harness
function __harness_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (harness _complete fish $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c harness -f -a '(__harness_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of the whole."""
    parser = subparsers.add_parser(
        "completion",
        help="completion of commands, options and names for a shell",
        description="Print the script by which a shell completes commands, options, tasks, models, "
        "judges and runs.",
    )
    parser.add_argument("shell", metavar="bash|zsh|fish", choices=SCRIPTS, help="the shell")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Print the script; the exit code."""
    sys.stdout.write(SCRIPTS[args.shell])
    return 0


def answer(shell: str = "", *typed: str) -> int:
    """Print what may stand where the cursor is, one a line; the exit code.

    bash gives its line whole, since it takes words apart at `=` and `:`; the others give words.
    """
    from harness.cli.complete import candidates, split_line

    words = split_line(" ".join(typed)) if shell == "bash" else list(typed)
    *before, current = words or [""]
    # Of a word that bash takes apart, it replaces what comes after the last of these.
    kept = max(current.rfind("="), current.rfind(":")) + 1 if shell == "bash" else 0
    for word in candidates(before, current):
        sys.stdout.write(word[kept:] + "\n")
    return 0
