"""Writes the bundled sample of GISTBench: `python tests/samples/gistbench.py`.

Everybody and everything in it is invented. People have a few tastes and share many of them; what
they are shown is partly chance, which they mostly skip, and partly what they waver about.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import harness_gistbench
from harness_gistbench.records import Signal

from harness.base.seeded_random import picked

SAMPLE = Path(harness_gistbench.__file__).parent / "sample" / "engagements.csv"
HEADER = ("user_id", "object_id", "object_text", "interaction_type", "interaction_time")
SEED = 325
PEOPLE = 40
SHORTEST, SPREAD = 100, 76
CLIPS_A_TOPIC = 52
ASIDES = 60
START, DAYS = 1_709_251_200, 30

# Tags first, the common one in front, then what clips are about.
TOPICS = (
    ("basketball hoops layup streetball", "a last-second layup; three-point drills; zone defence;"
     " a pickup match under street lights; a rookie's first dunk; free throws after practice;"
     " a broken backboard"),
    ("birds birdwatching nestbox migration", "owls at night; a heron in the city canal; garden"
     " birds in winter; a nest box with a camera; cranes on migration; robin song at dawn;"
     " a wild goose chase"),
    ("trains railway nighttrain signalbox", "a night train through the mountains; an old signal"
     " box; steam engines in the rain; narrow-gauge trains; a sleeper cabin; level crossings;"
     " a railway bridge from below"),
    ("photography filmcamera darkroom", "street photography at night; film cameras from a flea"
     " market; pinhole portraits; darkroom prints; old lenses; photos of garden birds;"
     " long exposures of trains"),
    ("woodworking joinery handplane", "dovetail joints; a walnut bench; sharpening a hand plane;"
     " a spoon carved from birch; a chest without nails; oil finishes; a workshop in a closet"),
    ("gardening planting balcony seedlings", "tomato seedlings; a balcony in the shade; winter"
     " vegetables; compost heaps; a rain garden; old apple trees; herbs on the window sill"),
    ("knitting sewing yarn handmade", "a cable sweater; sock heels; mending jeans; wool from hill"
     " sheep; a quilt of old shirts; left-handed knitting; buttonholes"),
    ("hiking trail ridge backpacking", "a ridge in fog; hut to hut in four days; a muddy forest"
     " trail; light backpacks; the long way to the lake; wild goats on the path; night hikes"),
    ("yoga pilates stretching breath", "morning stretches; yoga for stiff backs; balance on one"
     " leg; slow breathing; pilates on a chair; the headstand; a class in the park"),
    ("astronomy telescope nightsky meteors", "a home-made telescope; the lunar craters; meteor"
     " showers; double stars; dark winter skies; a rocket seen from the garden; star maps"),
    ("running marathon intervals", "the last mile of a marathon; running in rain; hill intervals;"
     " shoes after a thousand miles; a dog as running partner; negative splits; a street race"),
    ("poetry spokenword haiku", "haiku about trains; a poem for a lost dog; spoken word in a"
     " laundromat; rhymes that almost fit; love poems read badly; winter verses; one line a day"),
    ("fishing flyfishing lake", "tying a fly; the pike that got away; ice fishing at night; river"
     " trout; knots for beginners; a rod made of bamboo; an empty bucket"),
    ("motorcycles garage oldtimer", "a carburettor on the kitchen table; motorcycles in the snow;"
     " a chain that squeaks; kick starts; the long ride home; paint for an old tank;"
     " a sidecar dog"),
    ("skincare sunscreen routine", "a three-step routine; sunscreen in winter; clay masks; dry"
     " hands; skincare after running; empty bottles reviewed; the smell of soap"),
    ("golf putting fairway", "the shortest putt; a bunker escape; golf with one club; the lost"
     " ball; a goose on the fairway; grip changes; mini golf at night"),
    ("nails nailart gelpolish", "nail art with tiny birds; gel polish at home; a chrome effect;"
     " short nails; floral tips; peeling in one piece; stamps and stencils"),
    ("camping tent campfire stove", "a tent in the storm; campfire coffee; camping with a toddler;"
     " hammocks; a stove from a can; bear bags; the wrong sleeping bag"),
    ("interior decoration smallspace lamp", "one room for two; decoration from the flea market;"
     " a wall painted green; lamps instead of ceilings; book shelves; a rented bathroom;"
     " plants as curtains"),
    ("opera aria backstage", "an aria from the cheap seats; costumes before the premiere; opera"
     " in a parking garage; a cough in the third row; the orchestra pit; high notes explained;"
     " a singer's breakfast"),
    ("sourdough crumb levain ovenspring", "a starter that fell asleep; rye loaves; the crumb of"
     " a wet dough; bread baked over a campfire; scoring patterns; stale heels; a baker at four"
     " in the morning"),
    ("kintsugi ashglaze raku stoneware", "gold in a broken bowl; ash glazes; a kiln in the garden;"
     " cups that do not match; wheel-thrown bowls; cracks on purpose; clay from the river"),
    ("mechkeys keycaps switches lubed", "the quietest switches; a keyboard in walnut; soldering"
     " at night; keycaps like candy; typing tests; split layouts; a spacebar that rattles"),
    ("parkour precision vaults", "a jump between two walls; soft landings; vaults for beginners;"
     " the railing line; training in rain; falls in slow motion; a city seen from below"),
    ("thrifted upcycled denim", "a coat for two coins; jeans turned into a bag; labels of the"
     " seventies; moth holes; a suit that nearly fits; the smell of old wool; sorting bins"),
    ("kimchi koji pickled brine", "cabbage in brine; koji on barley; a pickle that fizzes; garlic"
     " in honey; mould or not; a cellar of jars; hot sauce from the balcony"),
    ("urbex abandoned derelict", "an empty sanatorium; the tunnel under the station; rust and"
     " ivy; a piano left behind; maps from the archive; a night guard's stories; wet stairs"),
    ("synths modular eurorack patch", "a patch with one oscillator; cables like noodles; drum"
     " loops from a washing machine; a synth in a lunch box; tape echo; out of tune on purpose;"
     " a concert for plants"),
    ("speedcubing algs pyraminx", "a solve under ten seconds; cubes with loose springs; blindfold"
     " attempts; finger tricks; a child beats the master; colour schemes; solving on a night"
     " train"),
    ("beekeeping hive propolis swarm", "a swarm in the apple tree; the first honey; hives in"
     " winter; a queen with a dot; smoke and patience; bees on a balcony; wax candles"),
)  # fmt: skip

FRAMES = (
    "A brief clip about {}", "Someone explains {} step by step", "My own try at {}",
    "What goes wrong with {}", "{} in close-up", "Two friends argue over {}",
    "{}, before and after", "Three questions on {}", "A quiet hour with {}",
    "The neighbour's opinion of {}", "All that I learned from {}", "Grandmother meets {}",
    "{} in one minute", "Why {} took a year", "{} without a word", "A whole day of {}",
    "{}: the part nobody shows", "Ranking {} from worst to best", "Live answers on {}",
    "{} as told by a child", "The cheap way to {}", "Rain, tea and {}", "{} at half speed",
    "An expert reacts to {}", "Is {} worth it?", "{} gone badly", "A love letter to {}",
    "{}, part two", "Ten facts about {}", "The sound of {}", "{} on a Sunday", "Back to {}",
)  # fmt: skip

LOOSE_TAGS = (
    "fyp", "weekend", "calm", "satisfying", "tutorial", "diy", "vintage", "winter", "budget",
    "beginner", "mood", "daily",
)  # fmt: skip

ASIDE_FRAMES = (
    "A person looks out of the window",
    "Coffee is poured and nothing happens",
    "A cat refuses to move",
    "Somebody counts to a hundred",
    "The weather, as seen from a bus",
    "An unboxing of something small",
)

WOULD: dict[str, tuple[float, float]] = {
    "taste": (0.07, 0.72),
    "doubt": (0.03, 0.52),
    "chance": (0.01, 0.26),
}
"""How often an engagement is an explicit positive one, and how often that or an implicit one."""


class Clip(NamedTuple):
    """An object: its id and its text."""

    id: int
    text: str


class Person(NamedTuple):
    """Topics that a person likes, the dearest first, and those that the person wavers about."""

    tastes: list[int]
    doubts: list[int]


def catalogue(rng: Random) -> list[list[Clip]]:
    """The clips of every topic, and in the end those about nothing; ids tell nothing of topics."""
    texts = [topic_texts(rng, topic) for topic in range(len(TOPICS))]
    texts.append([
        " ".join(f"#{tag}" for tag in dict.fromkeys(picked(rng, LOOSE_TAGS) for _ in range(3)))
        + f" {picked(rng, ASIDE_FRAMES)}"
        for _ in range(ASIDES)
    ])  # fmt: skip
    ids: dict[int, None] = {}
    while len(ids) < sum(map(len, texts)):
        ids[1_000_000 + int(rng.random() * 9_000_000)] = None
    given = iter(ids)
    return [[Clip(next(given), text) for text in group] for group in texts]


def topic_texts(rng: Random, topic: int) -> list[str]:
    """Different texts about one topic: tags, some of them loose or strayed, and a summary."""
    tags, things = TOPICS[topic]
    common, *rarer = tags.split()
    summaries: list[str] = []
    while len(summaries) < CLIPS_A_TOPIC:
        summary = picked(rng, FRAMES).format(picked(rng, things.split("; ")))
        summary = summary[0].upper() + summary[1:]
        if summary not in summaries:
            summaries.append(summary)
    return [f"{hashtags(rng, common, rarer)} {summary}" for summary in summaries]


def hashtags(rng: Random, common: str, rarer: list[str]) -> str:
    """The tags of a clip: most have the common one, all have one of the topic's."""
    tags = [common] if rng.random() < 0.7 else []
    if not tags or rng.random() < 0.5:
        tags.append(picked(rng, rarer))
    if rng.random() < 0.45:
        tags.append(picked(rng, LOOSE_TAGS))
    if rng.random() < 0.1:
        stray, _ = picked(rng, TOPICS)
        tags.append(stray.partition(" ")[0])
    return " ".join(f"#{tag}" for tag in dict.fromkeys(tags))


def person(rng: Random) -> Person:
    """Somebody with a few tastes, the first topics being the commonest ones."""
    topics: list[int] = []
    tastes = 5 + int(rng.random() * 4)
    while len(topics) < tastes + 3:
        topic = int(len(TOPICS) * rng.random() ** 1.3)
        if topic not in topics:
            topics.append(topic)
    return Person(topics[:tastes], topics[tastes:])


def shown(rng: Random, somebody: Person, clips: list[list[Clip]]) -> tuple[str, Clip]:
    """What somebody is shown next, and why: a few clips of each topic are seen by many."""
    where = rng.random()
    if where < 0.56:
        why, topic = "taste", somebody.tastes[int(len(somebody.tastes) * rng.random() ** 1.4)]
    elif where < 0.7:
        why, topic = "doubt", picked(rng, somebody.doubts)
    else:
        why, topic = "chance", int(len(clips) * rng.random())
    group = clips[topic]
    return why, group[int(len(group) * rng.random() ** 1.5)]


def signal(rng: Random, why: str) -> Signal:
    """What somebody does with a clip that was shown for this reason."""
    explicit, positive = WOULD[why]
    share = rng.random()
    if share < explicit:
        return "explicit_positive"
    return "implicit_positive" if share < positive else "implicit_negative"


def history(rng: Random, clips: list[list[Clip]]) -> Iterator[tuple[Clip, Signal, int]]:
    """One person's engagements in the order of their times, some at the same second."""
    somebody = person(rng)
    length = SHORTEST + int(SPREAD * rng.random() ** 2)
    pause = DAYS * 86_400 / length
    time = START
    for _ in range(length):
        why, clip = shown(rng, somebody, clips)
        yield clip, signal(rng, why), time
        if rng.random() < 0.97:
            time += int(1.6 * pause * rng.random())


def sample() -> str:
    """The whole sample as CSV, one engagement a line."""
    rng = Random(SEED)
    clips = catalogue(rng)
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(HEADER)
    for number in range(1, PEOPLE + 1):
        for clip, kind, time in history(rng, clips):
            rows.writerow((number, clip.id, clip.text, kind, time))
    return text.getvalue()


if __name__ == "__main__":
    SAMPLE.write_bytes(sample().encode())
