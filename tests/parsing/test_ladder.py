"""Replies are read by the highest rung that gives a value of the schema, and by no rung else."""

import json
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import PluginError
from harness.contracts.outcomes import Parsed, Unreadable
from harness.parsing import (
    JsonReader,
    KeyReader,
    TextReader,
    last_object,
    number_in,
    split_reasoning,
)
from harness.parsing.ladder import SchemaCheck, wire_schema

SCORE = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["score"],
}
NUMBERS = {"type": "array", "items": {"type": "integer"}}

read_score: JsonReader[Any] = JsonReader(schema=SCORE)
read_numbers: JsonReader[Any] = JsonReader(schema=NUMBERS)
read_any: JsonReader[Any] = JsonReader()


@pytest.mark.parametrize(
    ("text", "value", "rung"),
    [
        ('{"score": 3}', {"score": 3}, "strict"),
        ('\ufeff {"score": 3}\n', {"score": 3}, "strict"),
        ('{"score": 3, "score": 3}', {"score": 3}, "strict"),
        ('```json\n{"score": 3}\n```', {"score": 3}, "fenced"),
        ('```json {"score": 3}```', {"score": 3}, "fenced"),
        ('Sure!\n```\n{"score": 3}\n```\nBye', {"score": 3}, "fenced"),
        ('```json\n{"score": 3}', {"score": 3}, "fenced"),
        ('```\n```json\n{"score": 3}\n```\n```', {"score": 3}, "fenced"),
        ('```json\n{"score": 1}\n```\nNo:\n```json\n{"score": 2}\n```', {"score": 2}, "fenced"),
        ('```json\n{"score": 1}\n```\n```json\n{"score": 9}\n```', {"score": 1}, "fenced"),
        ('I say {"score": 3}, as in [1].', {"score": 3}, "brackets"),
        ('First {"score": 2}, no, {"score": 4}.', {"score": 4}, "brackets"),
        ('{{"score": 3}}', {"score": 3}, "brackets"),
        ('A "{" and {"score": 3, "why": "a } \\" b"}', {"score": 3, "why": 'a } " b'}, "brackets"),
        ('{"score": 3,}', {"score": 3}, "repaired"),
        ("{'score': 3}", {"score": 3}, "repaired"),
        ("{score: 3}", {"score": 3}, "repaired"),
        ('{"score": 3', {"score": 3}, "repaired"),
        ("{\u201cscore\u201d: 3}", {"score": 3}, "repaired"),
        ('Here:\n```json\n{"score": 3,}\n```\nAs you see.', {"score": 3}, "repaired"),
        ('{"score": 3, "why": "a\nb\tc"}', {"score": 3, "why": "a\nb\tc"}, "repaired"),
    ],
)  # fmt: skip
def test_objects(text, value, rung):
    assert read_score(text) == Parsed(value, rung)


def test_arrays():
    text = "It is [1, 3], because [1] and [3] fit."
    assert read_numbers(text) == Parsed([1, 3], "brackets")
    assert read_numbers("Not [1] but [2].") == Parsed([2], "brackets")
    assert read_numbers("[1, 3,]") == Parsed([1, 3], "repaired")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty"),
        (" \n\u00a0", "empty"),
        ("I cannot say.", "no_json"),
        ("```\nno json here\n```", "no_json"),
        ('{"score": 9}', "schema"),
        ('{"score": "3"}', "schema"),
        ('[{"score": 3}, {"score": 4}]', "schema"),
        ('"{\\"score\\": 3}"', "schema"),
        ('{"score": 3, "score": 4}', "no_json"),
        ('{"a": {"score": 3}, "a": {"score": 4}}', "no_json"),
        ('{"score": NaN}', "schema"),
        ('{"other": {"score": 3},}', "schema"),
        ("[" * 65 + "]" * 65, "no_json"),
    ],
)
def test_what_is_no_answer(text, cause):
    outcome = read_score(text)
    assert (type(outcome), outcome.cause) == (Unreadable, cause)
    assert len(outcome.detail) <= 200


@pytest.mark.parametrize(
    "text",
    [
        "Prose, nothing else.",
        "A citation [sic] and a {placeholder}.",
        "[\u201cunclosed",
        "{'",
        '{"said he',
    ],
)
def test_prose_is_never_mended_into_a_value(text):
    for kind in ("object", "array", "any"):
        outcome = JsonReader(kind=kind)(text)  # type: ignore[arg-type,var-annotated]
        assert isinstance(outcome, Unreadable), outcome


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, NaN, Infinity, -Infinity]", [1, "NaN", "Infinity", "-Infinity"]),
        ("[1e999, -1e999, 1e308]", ["1e999", "-1e999", 1e308]),
        ("[9223372036854775807, 9223372036854775808]", [2**63 - 1, "9223372036854775808"]),
        ("[-9223372036854775808, -9223372036854775809]", [-(2**63), "-9223372036854775809"]),
        ("[" + "9" * 5000 + "]", ["9" * 5000]),
    ],
)
def test_a_number_that_no_file_could_hold_is_its_text(text, value):
    assert read_any(text) == Parsed(value, "strict")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9223372036854775808"])
def test_a_number_that_no_file_could_hold_is_no_number(number):
    found = JsonReader(type=list[float])(f"[1, {number}]")
    assert found == Unreadable("schema", "at $[1]: Expected `float`, got `str`")
    rest = JsonReader(schema={"type": "object", "properties": {"score": {"type": "integer"}}})
    assert rest(f'{{"score": 4, "sure": {number}}}').value["score"] == 4  # type: ignore[union-attr]


def test_half_a_surrogate_pair_becomes_a_replacement_character():
    found = read_any('["\\ud83d\\ude00", "\\ud83d", "\\\\ud83d"]')
    assert found == Parsed(["\U0001f600", "\ufffd", "\\ud83d"], "strict")
    assert read_any('["\ud83d"]') == Parsed(["\ufffd"], "strict")


def test_convert_makes_the_value_and_may_refuse_it():
    def even(numbers):
        if any(number % 2 for number in numbers):
            raise ValueError("odd")
        return tuple(numbers)

    read = JsonReader(schema=NUMBERS, convert=even)
    assert read("[2, 4]") == Parsed((2, 4), "strict")
    assert read("[1, 2, 3] or [2]") == Parsed((2,), "brackets")
    assert read("[1]") == Unreadable("schema", "the benchmark refused it: odd")


class Cited(msgspec.Struct, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    items: tuple[int, ...]


def test_a_type_is_all_that_a_reader_needs():
    read = JsonReader(type=list[Cited], fallback=lambda text: [{"name": text, "items": []}])
    found = Parsed([Cited("a", (1, 2))], "brackets")
    assert read('So: [{"name": "a", "items": [1, 2.0]}]') == found
    assert read("none") == Parsed([Cited("none", ())], "regex")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('[{"name": "a", "items": [1.0, "2"]}]', "at $[0].items[1]: Expected `int`, got `str`"),
        ('[{"name": "a", "items": [true]}]', "at $[0].items[0]: Expected `int`, got `bool`"),
        ('[{"name": "a", "items": [1.5]}]', "at $[0].items[0]: Expected `int`, got `float`"),
        ('[{"name": "", "items": []}]', "at $[0].name: Expected `str` of length >= 1"),
        ('[{"name": "a"}]', "at $[0]: Object missing required field `items`"),
        ("[1]", "at $[0]: Expected `object`, got `int`"),
        ("{}", "dict where the array of the answer should be"),
    ],
)
def test_what_is_not_of_the_type_says_where(text, detail):
    assert JsonReader(type=list[Cited])(text) == Unreadable("schema", detail)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', Parsed({"a": 1}, "strict")),
        ('x\n```json\n{"a": 1}\n```', Parsed({"a": 1}, "fenced")),
        ('```json\n{"a": 1}\n```\nor {"a": 2}', Parsed({"a": 2}, "brackets")),
        ('[{"a": 1}, {"a": 2}]', Parsed({"a": 2}, "brackets")),
        ('{"a": 1} {"a": 2,}', Parsed({"a": 2}, "repaired")),
        ('{"a": 1} [3]', Parsed({"a": 1}, "brackets")),
        ('{"a": 1} {"a": NaN}', Parsed({"a": "NaN"}, "brackets")),
        ('{"a": 1} {"a": 2, "a": 3}', Unreadable("no_json", "the key 'a' has two values")),
        ("[3]", Unreadable("no_json", "nothing in the text begins like a JSON object")),
        (" ", Unreadable("empty")),
    ],
)
def test_the_last_object(text, found):
    assert last_object(text) == found


def test_fallback_is_the_last_rung_and_meets_the_schema_too():
    read = JsonReader(
        schema=SCORE,
        fallback=lambda text: {"score": int(text[-1])} if text[-1].isdigit() else None,
        convert=lambda value: value["score"],
    )
    assert read('{"score": 2}') == Parsed(2, "strict")
    assert read("I give a 4") == Parsed(4, "regex")
    assert read('{"score": 77} so 5') == Parsed(5, "regex")
    for text, cause in (("I give a 9", "schema"), ("I give nothing", "no_json")):
        outcome = read(text)
        assert (type(outcome), outcome.cause) == (Unreadable, cause)


def test_a_fault_of_the_benchmark_is_not_taken_for_a_fault_of_the_model():
    read: JsonReader[Any] = JsonReader(convert=lambda value: value["absent"])
    with pytest.raises(KeyError):
        read("{}")
    with pytest.raises(PluginError):
        JsonReader(schema={"type": "nonsense"})("[1]")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
containers = st.lists(json_values, max_size=4) | st.dictionaries(st.text(), json_values, max_size=4)
prose = st.text(st.characters(exclude_characters="[]{}`", exclude_categories=["Cs"]))
indents = st.sampled_from([None, 0, 2])


@given(json_values, indents, st.booleans())
def test_any_json_alone_is_strict(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert read_any(text) == Parsed(value, "strict")


@given(json_values, indents, prose, prose, st.sampled_from(["", "json", "JSON"]))
def test_any_json_in_a_fence_is_fenced(value, indent, before, after, language):
    text = f"Here:{before}\n```{language}\n{json.dumps(value, indent=indent)}\n```\n{after}"
    assert read_any(text) == Parsed(value, "fenced")


@given(containers, indents, prose, prose)
def test_any_container_in_prose_is_found_between_brackets(value, indent, before, after):
    text = f"Here:{before}{json.dumps(value, indent=indent)}{after}."
    assert read_any(text) == Parsed(value, "brackets")


@given(st.text() | st.text('[]{}",:\\`\n 1ajson', max_size=60))
@settings(max_examples=500)
def test_no_text_raises_and_every_value_can_be_kept(text):
    for reader in (read_any, read_score, read_numbers, JsonReader(kind="object")):
        outcome = reader(text)
        if isinstance(outcome, Parsed):
            json.dumps(outcome.value, allow_nan=False, ensure_ascii=False).encode()
        else:
            outcome.detail.encode()


@pytest.mark.parametrize(
    "piece",
    [
        "[", '{"a":', "\\", '{"\\', '{"a\\"', "```json\n", "``` ", "```json\n{\n", '{"', "[1]",
        "{}", "{ ", '{"a": word word, ', "}]", "{'", '["', '[{"a":"x,y":',
        "[" * 500 + "]" * 500, "\x00",
        "\ud800", "[1,,2] ", '{"a" "b"} x', '{"a":1,"a":2} ', "<think>", " ", "\n",
    ],
)  # fmt: skip
def test_a_hostile_megabyte_is_survived(piece):
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
    assert isinstance(read_score(text), Unreadable)
    assert isinstance(read_score(text[:50_000]), Unreadable)


def test_plain_text():
    read: TextReader[str] = TextReader()
    assert read(" a\nb \n") == Parsed("a\nb", "text")
    assert read(" \n") == Unreadable("empty")
    assert read.schema is None


def test_text_by_pattern_takes_the_last_match():
    read = TextReader(pattern=r"Score: (\d)", convert=int)
    assert read("Score: 1, or rather Score: 3.") == Parsed(3, "regex")
    whole: TextReader[str] = TextReader(pattern=r"\d+")
    assert whole("7 of 12") == Parsed("12", "regex")
    for refused in (read("none"), TextReader(convert=int)("three")):
        assert (type(refused), refused.cause) == (Unreadable, "schema")


def test_a_problem_says_where():
    check = SchemaCheck({"type": "object", "properties": {"a": NUMBERS}})
    assert check.problem({"a": [1, "x"]}) == "at $.a[1]: 'x' is not of type 'integer'"
    assert check.problem({"a": [1]}) is None


class Place(msgspec.Struct, forbid_unknown_fields=True):
    """Where it is."""

    title: Annotated[str, msgspec.Meta(description="as on a map")]
    floor: int | None = None


class House(msgspec.Struct):
    here: Annotated[Place, msgspec.Meta(description="now")]
    before: list[Place]
    by_name: dict[str, Place]
    pair: tuple[Place, int]
    either: Place | int


def test_references_are_replaced_and_what_forbids_more_requires_all():
    place = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "as on a map"},
            "floor": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["title", "floor"],
        "additionalProperties": False,
    }
    assert wire_schema(House) == {
        "type": "object",
        "properties": {
            "here": {**place, "description": "now"},
            "before": {"type": "array", "items": place},
            "by_name": {"type": "object", "additionalProperties": place},
            "pair": {
                "type": "array",
                "prefixItems": [place, {"type": "integer"}],
                "items": False,
                "minItems": 2,
                "maxItems": 2,
            },
            "either": {"anyOf": [{"type": "integer"}, place]},
        },
        "required": ["here", "before", "by_name", "pair", "either"],
    }


class Cat(msgspec.Struct, tag=True):
    lives: int = 9


class Dog(msgspec.Struct, tag=True):
    pass


def test_structs_that_a_tag_tells_apart_need_no_references():
    assert wire_schema(Cat | Dog) == {
        "anyOf": [
            {
                "type": "object",
                "properties": {"type": {"enum": ["Cat"]}, "lives": {"type": "integer"}},
                "required": ["type"],
            },
            {"type": "object", "properties": {"type": {"enum": ["Dog"]}}, "required": ["type"]},
        ]
    }
    assert "$" not in json.dumps(wire_schema(list[Cat | Dog]))


def to_number(value):
    found = number_in(value)
    return Unreadable("schema", f"{value!r} is no number") if found is None else found


STARS = KeyReader(
    key="stars", like=("rating", "star"), convert=to_number, of_value={"type": "number"}
)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"stars": 4}', Parsed(4.0, "strict")),
        ('{"rating": 1} and then {"stars": 4, "rating": 2}', Parsed(4.0, "brackets")),
        ('{"star count": 1, "My Rating": 2}', Parsed(2.0, "strict")),
        ('{"STARS": " 3.5 "}', Parsed(3.5, "quoted")),
    ],
)
def test_the_asked_key_wins_and_else_the_last_one_like_it(text, read):
    assert STARS(text) == read


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"score": 4}', "schema"),
        ('{"stars": "4/5"}', "schema"),
        ('{"stars": true}', "schema"),
        ("four", "no_json"),
    ],
)
def test_what_holds_no_such_answer_is_unreadable(text, cause):
    found = STARS(text)
    assert (type(found), found.cause) == (Unreadable, cause)


def test_a_server_may_enforce_an_object_with_the_key_alone():
    assert STARS.schema == {
        "type": "object",
        "properties": {"stars": {"type": "number"}},
        "required": ["stars"],
        "additionalProperties": False,
    }
    assert KeyReader(key="stars", like=("star",), convert=to_number).schema is None


@pytest.mark.parametrize(
    ("text", "answer", "reasoning"),
    [
        (" plain\n", " plain\n", None),
        ("<think>why</think>\nanswer", "answer", "why"),
        ("<think>\n\n</think>\n\nanswer", "answer", None),
        ("why\n</think>\nanswer", "answer", "why"),
        ("<think>never ends", "", "never ends"),
        ("answer\n<think>afterthought", "answer", "afterthought"),
        ("<think>\nwhy\n</think>answer", "answer", "why"),
        ("answer\n<think>after</think>", "answer", "after"),
        ("one\n<think>a</think>two</think>answer", "answer", "a\none\ntwo"),
        ("<think>a</think>b</think>answer", "answer", "a\nb"),
        ("<think>see <think> there</think>answer", "answer", "see <think> there"),
        ("<think>a</think>one\n<think>b</think>two", "one\ntwo", "a\nb"),
        ("<Thinking>why</Thinking>answer", "answer", "why"),
        ("<seed:think>why</seed:think>answer", "answer", "why"),
        ("[THINK]why[/THINK]answer", "answer", "why"),
        ('{"title": "I <think> so"}', '{"title": "I <think> so"}', None),
        (" I think </ so", " I think </ so", None),
    ],
)
def test_split(text, answer, reasoning):
    assert split_reasoning(text) == (answer, reasoning)


@given(st.text(), st.text())
def test_reasoning_in_front_never_changes_the_answer(thought, answer):
    if "hink" not in (thought + answer).lower():
        assert split_reasoning(f"<think>{thought}</think>{answer}")[0] == answer.strip()


@pytest.mark.parametrize("piece", ["<think>", "<", "x<think>", "[THINK]"])
def test_a_hostile_megabyte_of_thoughts_is_survived(piece):
    megabyte = piece * (1_000_000 // len(piece))
    assert split_reasoning(f"<think>{megabyte}") == ("", megabyte)


@pytest.mark.parametrize("piece", ["</think>", "\t"])
def test_a_hostile_megabyte_without_a_thought_is_survived(piece):
    assert split_reasoning("<think>" + piece * (1_000_000 // len(piece))) == ("", None)
