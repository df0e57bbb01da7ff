"""Entropies, and scores of prompts: values, missing ones, baselines, slices and counts."""

from collections import defaultdict
from math import isclose, log, sqrt
from random import Random
from statistics import fmean, stdev

import numpy as np
import pytest
from builders.behaviour import a_prompt, answered, random_prompts, ranking
from harness_behaviour import metrics
from harness_behaviour.entropy import Targets, crossed, drawn, gains, most_frequent, seen
from harness_behaviour.metrics import METRICS, OF_ANSWERS, score
from harness_behaviour.records import CANDIDATES, Options
from msgspec.structs import replace

from harness import CallFailed, Unreadable
from harness.contracts.task import IntervalSpec
from harness.scoring.aggregate import Columns, sound

FIVE = (0.0, 0.5, 0.3, 0.0, 0.2)
"""Five candidates, of whom the group has three; two of them are ranked."""


def cross(target, ranked, epsilon):
    [[found]] = crossed(Targets([target]), np.array([[ranked]])).at(epsilon).tolist()
    return found


def slow(target, ranked, epsilon):
    """The definition word by word: the cross-entropy, and the displaced mass."""
    falling = sorted(target, reverse=True)
    rest = [place for place in range(len(target)) if place not in ranked]
    rest.sort(key=lambda place: -target[place])
    estimate = dict(zip([*ranked, *rest], falling, strict=True))
    lost = [place for place, q in estimate.items() if q == 0 and target[place] > 0]
    for place in lost:
        estimate[place] = epsilon
    total = sum(estimate.values())
    found = -sum(p * log(estimate[place] / total) for place, p in enumerate(target) if p > 0)
    return found, sum(target[place] for place in lost)


def test_five_candidates_by_hand_with_the_natural_logarithm():
    [found] = Targets([FIVE]).entropies().tolist()
    assert isclose(found, -(0.5 * log(0.5) + 0.3 * log(0.3) + 0.2 * log(0.2)))
    assert Targets([(1.0, 0.0), (0.5, 0.5)]).entropies().tolist() == [0.0, -log(0.5)]
    # The ranking 4, 1 gets .5 and .3; of the others 2 has most and gets .2; nothing is ruled out.
    assert isclose(cross(FIVE, [4, 1], 1e-6), -(0.2 * log(0.5) + 0.5 * log(0.3) + 0.3 * log(0.2)))
    assert cross(FIVE, [4, 1], 1e-6) == cross(FIVE, [4, 1], 1e-3)
    # The ranking 0, 4 gets .5 and .3; then 1 gets .2, and 2 is ruled out: q is epsilon there alone,
    # and all are divided by 1 + epsilon.
    for epsilon in (1e-6, 1e-3):
        terms = 0.2 * log(0.3) + 0.5 * log(0.2) + 0.3 * log(epsilon)
        assert isclose(cross(FIVE, [0, 4], epsilon), -terms + log(1 + epsilon))
    # Both ranked candidates are nobody's: 1 gets .2, and 2 and 4 are ruled out.
    terms = 0.5 * log(0.2) + (0.3 + 0.2) * log(1e-3)
    assert isclose(cross(FIVE, [0, 3], 1e-3), -terms + log(1 + 2e-3))
    parts = crossed(Targets([FIVE]), np.array([[[4, 1], [0, 4], [0, 3]]]))
    assert parts.displaced.tolist() == [[0.0, 0.3, 0.5]]
    assert parts.zeroed.tolist() == [[0, 1, 2]]


def test_the_fast_path_is_the_slow_one():
    chance = Random(17)
    for _ in range(300):
        width = chance.randint(3, 60)
        had = [chance.choice((0, 0, 1, 2, 3, 7)) for _ in range(width)]
        had[chance.randrange(width)] += 1
        ranked = chance.sample(range(width), chance.randint(1, min(width, 10)))
        target = [one / sum(had) for one in had]
        for epsilon in (1e-6, 1e-3):
            expected, displaced = slow(target, ranked, epsilon)
            assert isclose(cross(target, ranked, epsilon), expected, rel_tol=1e-9, abs_tol=1e-12)
        [[found]] = crossed(Targets([target]), np.array([[ranked]])).displaced.tolist()
        assert isclose(found, displaced, abs_tol=1e-12)


def test_gain_share_seen_and_the_most_frequent_by_hand():
    targets = Targets([FIVE])
    rankings = np.array([[[1, 2], [2, 1], [0, 4]]])
    second = 1 / np.log2(3)
    best = 0.5 + 0.3 * second
    expected = [1.0, (0.3 + 0.5 * second) / best, 0.2 * second / best]
    assert np.allclose(gains(targets, rankings), [expected])
    assert seen(targets, rankings).tolist() == [[1.0, 1.0, 0.5]]
    # Equals come as they are shown.
    assert most_frequent(np.array([(1, 5, 0, 5, 2)]), 4).tolist() == [[[1, 3, 4, 0]]]


def test_random_rankings_are_decided_by_the_id_alone_and_have_each_candidate_as_often():
    some = drawn(["a", "b"], 3, candidates=50, ranked=10)
    again = drawn(["c", "b", "a"], 3, candidates=50, ranked=10)
    assert (some[0] == again[2]).all()
    assert (some[1] == again[1]).all()
    assert (drawn(["a"], 2, candidates=50, ranked=10)[0] == some[0, :2]).all()
    # These are the numbers on every machine.
    assert drawn(["movies/all/5/001"], 2, candidates=50, ranked=5).tolist() == [
        [[15, 32, 24, 40, 46], [42, 36, 1, 3, 21]]
    ]
    found = drawn([f"prompt {number}" for number in range(2_000)], 20, candidates=50, ranked=10)
    assert all(len(set(one)) == 10 for one in found.reshape(-1, 10).tolist()[:2_000])
    for place in range(10):
        counts = np.bincount(found[:, :, place].ravel(), minlength=50)
        spread = ((counts - 800) ** 2 / 800).sum()
        assert spread < 94, place  # chi-squared with 49 degrees of freedom, p = .0001


def scored(*pairs, **options):
    return {one.id: one for one in score(answered(*pairs), Options(**options))}


def results_of(found):
    columns = Columns(METRICS, map(sound, found.values()))
    return columns.results(interval=IntervalSpec(draws=20), seed=0, task="t")


def ideal(prompt):
    return sorted(range(CANDIDATES), key=lambda place: -prompt.counts[place])[:10]


def popular(prompt):
    """What most users have who are not behind the prompt."""
    others = [all - own for all, own in zip(prompt.popular, prompt.counts, strict=True)]
    return sorted(range(CANDIDATES), key=lambda place: -others[place])[:10]


def test_the_ideal_ranking_has_no_gap_and_one_of_what_nobody_has_is_worked_out_by_hand():
    pairs = [(prompt, ranking(*ideal(prompt))) for prompt in random_prompts(50)]
    for one in scored(*pairs).values():
        assert [one.values[name] for name in OF_ANSWERS] == [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]
        assert one.details.cross == one.details.cross_1e3 == one.details.entropy
    [one] = scored((a_prompt(), ranking(*range(40, 50)))).values()
    # The ten largest go to candidates that nobody has, so that of the 25 the last ten get nothing.
    assert one.values["displaced"] == pytest.approx(sum(range(1, 11)) / sum(range(1, 26)))
    assert [one.values[name] for name in ("ndcg", "seen", "filled")] == [0.0] * 3
    assert one.values["gap"] > one.values["gap_1e3"] > 1
    assert one.values["gap_optimistic"] == one.values["gap"]
    assert one.details.filled == 0


def test_short_rankings_are_filled_at_random_and_not_in_the_true_order():
    prompts = random_prompts(400)

    def chance(prompt):
        return Random(prompt.id).sample(range(CANDIDATES), 10)

    def cut(order, to):
        pairs = [(prompt, ranking(*order(prompt)[:to])) for prompt in prompts]
        return [one.values for one in scored(*pairs).values()]

    of_popular = [cut(popular, to) for to in (10, 5, 1)]
    ten, five, one = (fmean(values["gap"] for values in each) for each in of_popular)
    assert ten < five < one
    # The paper's filling makes the shortest ranking the best.
    ten, five, one = (fmean(values["gap_optimistic"] for values in each) for each in of_popular)
    assert ten > five > one
    whole = cut(chance, 10)
    for to in (5, 1):
        pairs = zip(cut(chance, to), whole, strict=True)
        apart = [short["gap"] - long["gap"] for short, long in pairs]
        assert abs(fmean(apart)) < 3 * stdev(apart) / sqrt(len(apart))


def test_ten_unknown_titles_score_as_random_draws_do_and_never_as_the_ideal():
    pairs = [(prompt, ranking(unknown=10)) for prompt in random_prompts(20)]
    for one in scored(*pairs).values():
        assert one.details.cross == pytest.approx(fmean(one.details.cross_draws))
        assert one.values["gap"] > 0
        assert one.values["filled"] == 10
        assert one.values["gap_optimistic"] == 0
        assert one.counts["answers without a candidate"] == 1
    [alone] = scored(pairs[0], fills=1).values()
    assert alone.values["gap"] == alone.values["gap_random"]


def test_random_is_one_draw_of_ten():
    found = scored(*((one, ranking(*range(10))) for one in random_prompts(20))).values()
    assert all(one.details.cross_draws[0] == one.details.cross_random for one in found)
    assert {len(one.details.cross_draws) for one in found} == {20}


def test_what_cannot_be_read_is_missing_and_counts_as_random_in_the_second_column():
    first, second, third = random_prompts(3)
    failed = (second, Unreadable("empty_list")), (third, CallFailed("timeout"))
    found = scored((first, ranking(*ideal(first))), *failed)
    lost = found[second.id]
    assert lost.missing == dict.fromkeys(OF_ANSWERS, "recommend/empty_list")
    assert found[third.id].missing["gap"] == "recommend/timeout"
    assert lost.values.keys() == {"gap_random", "gap_popular", "gap_popular_in_group"}
    assert lost.worst["gap"] == lost.worst["gap_optimistic"] == lost.values["gap_random"]
    assert (lost.worst["filled"], lost.counts) == (10, {})
    assert (lost.details.cross, lost.details.displaced, lost.details.filled) == (None,) * 3
    assert lost.details.cross_random > lost.details.entropy
    results = results_of(found)
    gap = results["gap"]
    assert (gap.value, gap.n) == (0.0, 1)
    assert gap.missing == {"recommend/empty_list": 1, "recommend/timeout": 1}
    worst = [found[one.id].worst["gap"] for one in (second, third)]
    assert gap.counted_as_worst == pytest.approx(sum(worst) / 3)
    assert results["gap_random"].n == 3


def test_no_baseline_counts_the_users_behind_the_prompt():
    prompts = random_prompts(100)
    for one in scored(*((prompt, ranking(*popular(prompt))) for prompt in prompts)).values():
        assert one.values["gap_popular"] == one.values["gap"]
        for name in ("cross", "cross_1e3", "displaced"):
            assert getattr(one.details, f"{name}_popular") == getattr(one.details, name)
        assert one.values["gap_random"] > 0
    # All nine behind the prompt have the first ten, and both others of the group the last ten.
    behind = (9,) * 10 + (1,) * 15 + (0,) * 25
    others = (0,) * 40 + (2,) * 10
    group = tuple(map(sum, zip(behind, others, strict=True)))
    prompt = a_prompt(counts=behind, users=9, popular=behind, popular_in_group=group)
    [one] = scored((prompt, ranking(*range(40, 50)))).values()
    assert one.values["gap_popular_in_group"] == one.values["gap"]
    # Nobody but these nine has a candidate, so that the first ten are those shown first.
    shuffled = a_prompt(counts=behind[::-1], popular=behind[::-1], popular_in_group=group[::-1])
    [one] = scored((shuffled, ranking(*range(10)))).values()
    assert one.values["gap_popular"] == one.values["gap"] > 0


def test_popular_in_group_is_a_baseline_of_setting_a_alone():
    # In the last prompt the group has nobody but those behind it.
    prompts = [a_prompt(setting=setting) for setting in "abc"]
    prompts.append(a_prompt(popular_in_group=prompts[0].counts))
    for prompt, there in zip(prompts, (True, False, False, False), strict=True):
        [one] = scored((prompt, ranking(*range(10)))).values()
        assert ("gap_popular_in_group" in one.values) == there
        assert (one.details.cross_popular_in_group is not None) == there


def test_scores_do_not_depend_on_the_order_or_on_how_many_are_worked_out_together(monkeypatch):
    many = enumerate(random_prompts(70))
    pairs = [(prompt, ranking(*popular(prompt)[: number % 11])) for number, prompt in many]
    together = scored(*pairs)
    monkeypatch.setattr(metrics, "AT_ONCE", 7)
    assert scored(*reversed(pairs)) == together


def test_slices_are_proxy_history_users_and_third_of_the_entropy():
    many = random_prompts(90)
    counts = (1, *(0,) * (CANDIDATES - 1))
    # Prompts of no setting are in no third.
    nothing = [a_prompt(100 + number, setting="none", counts=counts) for number in range(30)]
    found = scored(*((prompt, ranking(*popular(prompt))) for prompt in [*many, *nothing]))
    names = {3: "3", 4: "4-5", 20: "6-20", 100: "21-100", 101: "over 100"}
    thirds = defaultdict(list)
    for prompt in many:
        one = found[prompt.id]
        thirds[one.slices["entropy"]].append(one.details.entropy)
        own = {"users": names[prompt.users], "entropy": one.slices["entropy"]}
        assert one.slices == {"proxy": "all", "history": "5", **own}
    lowest, middle, highest = (thirds[name] for name in ("lowest", "middle", "highest"))
    assert len(lowest) == len(middle) == len(highest) == 30
    assert max(lowest) < min(middle) < max(middle) < min(highest)


def test_the_prompt_without_context_has_details_and_enters_no_column():
    nothing = a_prompt(setting="none", proxy="none", length=0, history=(), group=())
    other = a_prompt(1, setting="c", length=0, history=())
    found = scored((nothing, ranking(*range(10))), (other, ranking(*range(10))))
    lone = found[nothing.id]
    assert (lone.values, lone.missing, lone.worst) == ({}, {}, {})
    assert (lone.details.setting, lone.details.cross) == ("none", lone.details.entropy)
    columns = results_of(found).items()
    assert {name for name, one in columns if one.n != 1} == {"gap_popular_in_group"}
    assert scored((nothing, Unreadable("empty")))[nothing.id].details.cross is None


def test_titles_are_counted_by_how_they_were_found():
    how = ("exact",) * 5 + ("folded",) * 2 + ("closest",)
    read = replace(ranking(*range(8), unknown=2, repeated=1), matched=how)
    [one] = scored((a_prompt(), read)).values()
    assert one.counts == {
        "titles matched: exact": 5, "titles matched: folded": 2, "titles matched: closest": 1,
        "titles unknown": 2, "titles repeated": 1, "places filled at random": 2,
    }  # fmt: skip
    [echo] = scored((a_prompt(), ranking(*range(10), surplus=40))).values()
    assert echo.counts["titles after the tenth place"] == 40
