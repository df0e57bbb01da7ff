"""Keys made the fast way are the bytes that the standard library writes.

Draws are worked out by hand. The numbers of `Random(7)` are 0.3238, 0.1508, 0.6509, 0.0724: those
of the Mersenne Twister, which every version of Python has.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, Generic, Literal, TypeVar
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.hashing import (
    FILE,
    LINE,
    _is_plain,
    canonical,
    canonical_plain,
    damage,
    seal,
    sealed,
    struct_texts,
)
from harness.base.seeded_random import drawn, picked, shuffled


class Row(msgspec.Struct, frozen=True, array_like=True):
    number: int
    text: str
    kind: Literal["a", "b"] = "a"


class Short(msgspec.Struct, frozen=True, omit_defaults=True, tag="short", tag_field="is"):
    z: int = 0
    a: str = ""


class Long(msgspec.Struct, frozen=True, rename={"first": "zz"}, tag="long", tag_field="is"):
    first: bool
    b: str | None = None


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    id: str
    rows: tuple[Row, ...]
    pair: tuple[int, str]
    inner: Short | Long
    others: list[Short]
    below: Whole | None = None


class Fraction(msgspec.Struct, frozen=True):
    rows: tuple[float, ...]


class Pair(msgspec.Struct, frozen=True):
    both: tuple[str, float]


class Table(msgspec.Struct, frozen=True):
    rows: dict[str, int]


T = TypeVar("T")


class Box(msgspec.Struct, Generic[T], frozen=True):
    inner: T


class Boxes(msgspec.Struct, frozen=True):
    whole: Box[int]
    other: Box[float]


class Anything(msgspec.Struct, frozen=True):
    inner: tuple[Any, ...]


whole_texts = st.one_of(
    st.text(),
    st.text(st.characters(codec="ascii")),
    st.text(st.characters(categories=["Cc", "So"])),
)
texts = whole_texts | st.text(st.characters(categories=["Cs"]))
numbers = st.integers() | st.integers(2**60, 2**70) | st.integers(-(2**70), -(2**60))
shorts = st.builds(Short, z=numbers, a=whole_texts)
wholes = st.builds(
    Whole,
    user=whole_texts,
    id=whole_texts,
    rows=st.lists(st.builds(Row, number=numbers, text=whole_texts)).map(tuple),
    pair=st.tuples(numbers, whole_texts),
    inner=shorts | st.builds(Long, first=st.booleans(), b=st.none() | whole_texts),
    others=st.lists(shorts),
)


def by_the_standard_library(value):
    plain = msgspec.to_builtins(value)
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode("ascii")


@given(wholes, st.none() | wholes)
def test_a_struct_has_the_bytes_of_the_standard_library(value, below):
    nested = msgspec.structs.replace(value, below=below)
    text, canonical_text = struct_texts(nested)
    assert canonical_text == by_the_standard_library(nested)
    assert json.loads(text) == json.loads(canonical_text)
    assert text == canonical_text or not text.isascii() or b"\x7f" in text


@given(st.lists(st.lists(texts | numbers | st.booleans() | st.none())))
def test_so_have_plain_values(value):
    assert canonical_plain(value) == canonical(value) == by_the_standard_library(value)


@pytest.mark.parametrize("code", [*range(0x21), 0x22, 0x5C, 0x7E, 0x7F, 0x80, 0x2028, 0xD800])
def test_so_has_every_character_that_is_escaped(code):
    assert canonical_plain([f"a{chr(code)}b"]) == json.dumps([f"a{chr(code)}b"]).encode("ascii")


def test_types_whose_numbers_or_keys_could_be_written_otherwise_are_not_plain():
    assert _is_plain(Whole)
    assert not any(_is_plain(kind) for kind in (Fraction, Pair, Table, Anything, Boxes))
    assert struct_texts(Fraction((1e16, 1e-05)))[1] == b'{"rows":[1e+16,1e-05]}'
    assert struct_texts(Anything((1e16, 1e-05)))[1] == b'{"inner":[1e+16,1e-05]}'
    assert struct_texts(Table({"b": 1, "a": 2}))[1] == b'{"rows":{"a":2,"b":1}}'
    with pytest.raises(ValueError, match="Out of range float"):
        struct_texts(Fraction((float("nan"),)))


LINE_TEXT = b'{"id":"1","value":0.25}\n'
FILE_TEXT = b'{\n  "id": "1",\n  "value": 0.25\n}\n'


@pytest.mark.parametrize(("text", "form"), [(LINE_TEXT, LINE), (FILE_TEXT, FILE)])
def test_every_flipped_bit_of_an_object_is_found(text, form):
    whole = sealed(text, form)
    assert damage(whole, form) is None
    for place in range(len(whole) * 8):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        assert damage(bytes(flipped), form) is not None, place
    for end in range(len(whole)):
        assert damage(whole[:end], form) is not None


def test_the_checksum_is_the_last_member_and_covers_what_comes_before_in_its_object():
    expected = f"{crc32(LINE_TEXT[:-2]):08x}"
    assert json.loads(sealed(LINE_TEXT, LINE)) == {"id": "1", "value": 0.25, "crc32": expected}
    assert list(json.loads(sealed(FILE_TEXT, FILE))) == ["id", "value", "crc32"]
    text = bytearray(b"before" + LINE_TEXT)
    seal(text, LINE, start=len(b"before"))
    assert bytes(text) == b"before" + sealed(LINE_TEXT, LINE)


def test_one_of_the_values_is_picked():
    rng = Random(7)
    # 0.3238 of 4 is 1, 0.1508 of 4 is 0, 0.6509 of 4 is 2.
    assert [picked(rng, "abcd") for _ in range(3)] == ["b", "a", "c"]


def test_all_values_are_put_in_another_order_and_each_place_takes_one_number():
    values = ["a", "b", "c", "d"]
    # 0.3238 of 4 is 1: b acd. 0.1508 of 3 is 0: ba cd. 0.6509 of 2 is 1: bad c.
    assert shuffled(Random(7), values) == ("b", "a", "d", "c")
    assert values == ["a", "b", "c", "d"]
    rng = Random(7)
    shuffled(rng, "abc")
    assert rng.random() == pytest.approx(0.0724, abs=5e-5)
    assert shuffled(Random(7), ()) == ()


@pytest.mark.parametrize(
    ("count", "those"), [(0, []), (1, ["b"]), (3, ["b", "a", "d"]), (9, ["b", "a", "d", "c"])]
)
def test_no_more_are_drawn_than_are_asked_for_or_there(count, those):
    assert drawn(Random(7), "abcd", count) == those
