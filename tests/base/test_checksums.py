import json
from zlib import crc32

import pytest

from harness.base.hashing import FILE, LINE, damage, seal, sealed

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
