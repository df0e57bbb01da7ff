"""What building the prompts of user behaviour prediction costs, and loading built ones.

    python benchmarks/behaviour.py                  # a made-up log: 3 GB in a temporary folder
    python benchmarks/behaviour.py --movies ml-1m     # the cells of a folder of MovieLens 1M too

The event log has the layout and about the size of last.fm 1K. Each part is a process of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from measure import HERE, run_measured

USERS, PLAYS_A_USER, ARTISTS, TRACKS = 992, 19_200, 100_000, 1_000_000
COUNTRIES = (
    "United States",
    "United Kingdom",
    "Poland",
    "Germany",
    "Norway",
    "Brazil",
    "Japan",
    "",
)
SCRIPT = HERE / "contenders" / "harness_behaviour_data.py"


def write_music(folder: Path) -> None:
    """Writes 992 users with 19,200 plays each, of tracks by popularity and of the user's own."""
    import numpy as np

    folder.mkdir()
    rng = np.random.default_rng(17)
    with (folder / "userid-profile.tsv").open("w", encoding="utf-8") as file:
        file.write("#id\tgender\tage\tcountry\tregistered\n")
        file.writelines(
            f"user_{user:06}\t{('m', 'f', '')[user % 3]}\t\t{COUNTRIES[user % 8]}\tAug 13, 2006\n"
            for user in range(1, USERS + 1)
        )
    by = (ARTISTS * rng.random(TRACKS) ** 2).astype(int)
    named = [
        f"{artist:08x}-2bb4-4d28-b9cb-000000000000\tThe artist number {artist}\t"
        f"{track:08x}-e3a1-4b4b-8e0a-000000000000\tThe song of number {track}\n"
        for track, artist in enumerate(by.tolist())
    ]
    name = folder / "userid-timestamp-artid-artname-traid-traname.tsv"
    with name.open("w", encoding="utf-8") as file:
        for user in range(1, USERS + 1):
            own = (TRACKS * rng.random(5_000) ** 1.5).astype(int)
            plays = own[(len(own) * rng.random(PLAYS_A_USER) ** 2).astype(int)]
            start = f"user_{user:06}\t2009-0"
            file.writelines(
                f"{start}{1 + place % 9}-{1 + place % 28:02}T{place % 24:02}:{place % 60:02}:25Z\t"
                f"{named[track]}"
                for place, track in enumerate(plays.tolist())
            )
        file.write("user_000001\t2009-05-03T15:48:25Z\t\tAn artist\t\tA song\rin two\tparts\n")


def main() -> None:
    """Writes the log, and prints what building and loading cost."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--movies", type=Path, help="a folder with the files of MovieLens 1M")
    parser.add_argument("--no-music", action="store_true", help="leave the event log out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as scratch:
        logs = {"movies": given.movies} if given.movies else {}
        if not given.no_music:
            logs["music"] = Path(scratch) / "lastfm"
            write_music(logs["music"])
        for domain, folder in logs.items():
            out = Path(scratch) / domain
            for what, words in {
                "built": ("build", domain, str(folder), str(out)),
                "loaded for a run": ("load", domain, str(out)),
            }.items():
                log = Path(scratch) / "output"
                cost = run_measured([sys.executable, str(SCRIPT), *words], log=log)
                print(
                    f"{domain} {what}: {cost.wall:.1f} s, {cost.cpu:.1f} s of processor time, "
                    f"{cost.memory:,.0f} MiB; {log.read_text('utf-8').strip()}"
                )


if __name__ == "__main__":
    main()
