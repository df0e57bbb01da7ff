"""The bundled sample is what its generator makes, and is as varied as it says."""

import re
from collections import Counter, defaultdict

from builders.texts import read_csv
from harness_gistbench.categories import categories
from samples.gistbench import (
    ASIDE_FRAMES,
    FRAMES,
    LOOSE_TAGS,
    SAMPLE,
    TOPICS,
    sample,
)


def test_the_generator_makes_the_committed_bytes():
    assert SAMPLE.read_bytes() == sample().encode()


def test_it_has_the_published_layout_and_is_small():
    header, first = SAMPLE.read_text(encoding="utf-8").splitlines()[:2]
    assert header == "user_id,object_id,object_text,interaction_type,interaction_time"
    assert re.fullmatch(r"1,\d{7},#.+,(implicit|explicit)_(positive|negative),\d{10}", first)
    assert SAMPLE.stat().st_size < 900_000


def test_forty_people_with_five_thousand_engagements_and_a_hundred_or_more_each():
    lengths = Counter(row["user_id"] for row in read_csv(SAMPLE))
    assert len(lengths) == 40
    assert min(lengths.values()) == 100
    assert max(lengths.values()) > 150
    assert 4_800 < sum(lengths.values()) < 5_200


def test_every_person_skips_and_watches_and_few_engagements_are_explicit():
    signals = defaultdict(Counter)
    for row in read_csv(SAMPLE):
        signals[row["user_id"]][row["interaction_type"]] += 1
    total = sum(signals.values(), Counter())
    assert set(total) == {"explicit_positive", "implicit_positive", "implicit_negative"}
    assert all(set(one) == set(total) for one in signals.values())
    assert total["implicit_positive"] > total["implicit_negative"] > total["explicit_positive"]


def test_most_clips_are_seen_by_several_people_and_each_has_one_text():
    people, texts, twice = defaultdict(set), defaultdict(set), Counter()
    for row in read_csv(SAMPLE):
        people[row["object_id"]].add(row["user_id"])
        texts[row["object_id"]].add(row["object_text"])
        twice[row["user_id"], row["object_id"]] += 1
    assert sum(len(seen) > 1 for seen in people.values()) > len(people) / 2
    assert all(len(one) == 1 for one in texts.values())
    assert len(people) > 1_000, "the pool of distractors is smaller than all clips"
    assert max(twice.values()) > 1


def test_times_are_of_thirty_days_and_some_are_the_same():
    times = defaultdict(list)
    for row in read_csv(SAMPLE):
        times[row["user_id"]].append(int(row["interaction_time"]))
    for one in times.values():
        assert one == sorted(one)
        assert one[-1] - one[0] < 30 * 86_400
    assert any(len(set(one)) < len(one) for one in times.values())


def test_some_topics_share_a_word_with_a_category_and_some_with_none():
    known = {word for one in categories(None) for word in re.findall(r"\w+", one.name.casefold())}
    common = [tags.split() for tags, _ in TOPICS]
    named = [tags for tags in common if known & set(tags)]
    assert 10 < len(named) < len(common) - 5


def test_every_text_is_made_of_the_generators_own_words():
    ours = " ".join([*(" ".join(topic) for topic in TOPICS), *FRAMES, *ASIDE_FRAMES, *LOOSE_TAGS])
    words = set(re.findall(r"\w+", ours.casefold()))
    for row in read_csv(SAMPLE):
        assert set(re.findall(r"\w+", row["object_text"].casefold())) <= words
