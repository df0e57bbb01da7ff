"""Mending is bounded: a text that would cost quadratic time is given up."""

import pytest

from harness.parsing.decode import MAX_CHARACTERS, NotJson, Reads, counted, repair_json


def test_an_almost_right_answer_is_mended_to_plain_values_also_if_it_is_long():
    assert repair_json('{"a": [1, 2,], "b": \'x\'') == {"a": [1, 2], "b": "x"}
    (key,) = repaired = repair_json('{"name": "it",')
    assert type(key) is type(repaired["name"]) is str
    rows = ",\n".join(f"{{'name': 'interest {n}', 'items': [1, 2, 3]}}" for n in range(500))
    assert len(repair_json(f"[{rows},]")) == 500


@pytest.mark.parametrize("piece", ['{"', "{'", '{"a": word word, ', '[{"a":"b","c":[x'])
def test_work_is_bounded_and_not_only_length(piece):
    with pytest.raises(NotJson, match="too broken"):
        repair_json((piece * 20_000)[:20_000])


@pytest.mark.parametrize("copy", [lambda text: text[2:], lambda text: text[:2] + "{" + text[2:]])
def test_a_copy_of_a_text_counts_its_reads_too(copy):
    text = copy(counted("[1, 2", Reads(10)))
    with pytest.raises(NotJson, match="too broken"):
        for _ in range(12):
            assert text[0]


def test_a_part_of_a_text_costs_as_many_reads_as_it_has_characters():
    text = counted("abcdefgh", Reads(7))
    assert text[1:5] == "bcde"
    with pytest.raises(NotJson, match="too broken"):
        text[1:5]


def test_what_is_too_long_or_breaks_a_rule_is_not_mended():
    with pytest.raises(NotJson, match="longer than"):
        repair_json("{'a': '" + "x" * MAX_CHARACTERS + "'}")
    with pytest.raises(NotJson):
        repair_json('{"a": 1, "a": 2}')


@pytest.mark.parametrize("number", ["NaN", "Infinity", "99999999999999999999", "1e999"])
def test_a_number_that_no_file_could_hold_is_a_text(number):
    mended = repair_json(f'{{"a": [1, {number}, 2')
    assert mended["a"][0] == 1  # type: ignore[call-overload]
    assert isinstance(mended["a"][1], str)  # type: ignore[call-overload]
    assert mended["a"][2] == 2  # type: ignore[call-overload]


@pytest.mark.parametrize("text", ["{'", "[“", "[,", "{:}"])
def test_nothing_left_is_no_answer(text):
    with pytest.raises(NotJson):
        repair_json(text)
