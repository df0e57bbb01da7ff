"""The `harness` command, also as `python -m harness`; Ctrl-C ends it while it is imported too."""

import sys


def main() -> int:
    """Run the command and return its exit code."""
    try:
        from harness.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("harness: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
