"""The bundled samples are what their generators make."""

import gzip

from builders.horizon import rows_of
from samples import behaviour, gistbench, horizon, interests, perrecbench, usersumbench


def contents(folder):
    """The files by name, unpacked: how a text is packed depends on the version of zlib."""
    return {
        str(file.relative_to(folder)): (
            gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        )
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_behaviour(tmp_path):
    behaviour.write_movies(tmp_path / "movies")
    behaviour.write_music(tmp_path / "music")
    assert contents(tmp_path) == contents(behaviour.SAMPLE)
    assert size(behaviour.SAMPLE) < 600_000


def test_interests():
    assert interests.SAMPLE.read_bytes() == interests.sample().encode()


def test_gistbench():
    assert gistbench.SAMPLE.read_bytes() == gistbench.sample().encode()


def test_perrecbench(tmp_path):
    perrecbench.write(tmp_path)
    assert contents(tmp_path) == contents(perrecbench.SAMPLE)


def test_usersumbench(tmp_path):
    assert contents(usersumbench.write(tmp_path)) == contents(usersumbench.SAMPLE)
    assert size(usersumbench.SAMPLE) < 250_000


def test_horizon(tmp_path):
    raw = contents(horizon.write(tmp_path / "raw"))
    assert raw == {name: contents(horizon.SAMPLE)[name] for name in raw}
    assert size(horizon.SAMPLE) < 1_500_000


def test_the_data_of_horizon_is_what_curation_makes_of_its_sample(tmp_path):
    made, kept = horizon.write_data(tmp_path / "data"), horizon.SAMPLE / "data"
    files = sorted(str(file.relative_to(made)) for file in made.rglob("*.parquet"))
    assert files == sorted(str(file.relative_to(kept)) for file in kept.rglob("*.parquet"))
    for name in files:
        assert rows_of(made / name) == rows_of(kept / name), name
