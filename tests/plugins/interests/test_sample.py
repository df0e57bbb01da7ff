"""The bundled sample is what its generator makes."""

from samples.interests import SAMPLE, sample


def test_the_generator_makes_the_committed_bytes():
    assert SAMPLE.read_bytes() == sample().encode()
