"""KuaiRec and MIND: what was watched or opened, and what was passed over."""

import pytest
from builders.gistbench import LIKED, SKIPPED, WATCHED
from harness_gistbench.histories import Engagement

MATRIX = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
CAPTIONS = (
    "video_id,manual_cover_text,caption,topic_tag,first_level_category_id,"
    "first_level_category_name,second_level_category_id,second_level_category_name,"
    "third_level_category_id,third_level_category_name\n"
)


def watched(video, ratio, when="1593878903.438"):
    return f"14,{video},4381,6067,2020-07-05 05:27:48.378,20200705.0,{when},{ratio}\n"


RATIOS = {
    "0.0": SKIPPED, "0.2999999": SKIPPED, "0.3": WATCHED, "0.9": WATCHED, "0.9000001": LIKED,
    "5.11": LIKED,
}  # fmt: skip


def test_watch_ratios_are_signals(load_histories, tmp_path):
    rows = [
        watched(1, ratio).replace("14,", f"u{number},", 1) for number, ratio in enumerate(RATIOS)
    ]
    (tmp_path / "small_matrix.csv").write_text(MATRIX + "".join(rows))
    (tmp_path / "kuairec_caption_category.csv").write_text(
        f"{CAPTIONS}1,UNKNOWN,Rain,[],1,Nature,-124,UNKNOWN,-124,UNKNOWN\n"
    )
    found = load_histories("gist_kuairec", tmp_path)
    for number, signal in enumerate(RATIOS.values()):
        assert found.history(f"u{number}") == [Engagement("1", "Rain | Nature", signal)]
    assert found.signals == (LIKED, WATCHED, SKIPPED)


def test_captions_with_bare_returns_keep_their_rows(load_histories, tmp_path):
    (tmp_path / "small_matrix.csv").write_text(
        MATRIX + watched(1, 1) + watched(2, 0.5, "1593878904.0") + watched(3, 1, "") + watched(4, 1)
    )
    (tmp_path / "kuairec_caption_category.csv").write_bytes(
        CAPTIONS.encode()
        + b'1,Cover,So\rlong,"[a,b]",1,Nature,2,Rain,-124,UNKNOWN\n'
        + b"2,UNKNOWN,,[],-124,UNKNOWN,-124,UNKNOWN,-124,UNKNOWN\n"
        + b"3,UNKNOWN,End\r,[],1,Nature,1,Nature,-124,UNKNOWN\n"
    )
    found = load_histories("gist_kuairec", tmp_path)
    assert found.history("14") == [
        Engagement("1", "So long | Cover | [a,b] | Nature | Rain", LIKED),
        Engagement("3", "End | Nature", LIKED),
    ]
    assert load_histories.notes == {
        "engagements left out as their object has no text": 2,
        "engagements without a time, taken as the oldest": 1,
    }


def test_the_small_matrix_is_read_where_both_are_there(load_histories, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "small_matrix.csv").write_text(MATRIX + watched(1, 1))
    (data / "big_matrix.csv").write_text(MATRIX + watched(2, 1))
    (data / "kuairec_caption_category.csv").write_text(
        CAPTIONS + "1,,Small,[],1,A,2,B,3,C\n2,,Big,[],1,A,2,B,3,C\n"
    )
    assert [one.object for one in load_histories("gist_kuairec", tmp_path).history("14")] == ["1"]
    big = {"interactions": {"files": ["data/big_matrix.csv"]}}
    found = load_histories("gist_kuairec", tmp_path, tables=big)
    assert [one.object for one in found.history("14")] == ["2"]


NEWS = (
    'N1\tsports\tmore\t"Home run, he said\tIt went far.\thttps://x/1\t[]\t[]\n'
    "N2\tnews\tworld\tTrains stop\t\thttps://x/2\t[]\t[]\n"
    "N3\tnews\tworld\tBread rises\tIn price\thttps://x/3\t[]\t[]\n"
)
BEHAVIORS = (
    "1\tU1\t11/12/2019 2:14:46 PM\tN3 N2\tN1-0 N2-1\n"
    "2\tU1\t11/9/2019 12:05:00 AM\tN3 N2\tN2-0\n"
    "3\tU1\t11/12/2019 9:00:00 AM\tN3 N2\tN3-1\n"
    "4\tU2\t11/12/2019 9:00:00 AM\t\tN1-1 N9-0\n"
)


@pytest.fixture
def mind(load_histories, tmp_path):
    """Loads MIND from these behaviors."""

    def read(behaviors=BEHAVIORS, **options):
        (tmp_path / "behaviors.tsv").write_text(behaviors)
        (tmp_path / "news.tsv").write_text(NEWS)
        return load_histories("gist_mind", tmp_path, **options)

    return read


def test_clicks_are_explicit_and_what_was_passed_over_implicit(mind, load_histories):
    found = mind()
    assert found.history("U1") == [
        Engagement("N1", '"Home run, he said | It went far.', SKIPPED),
        Engagement("N2", "Trains stop", LIKED),
        Engagement("N3", "Bread rises | In price", LIKED),
        Engagement("N2", "Trains stop", SKIPPED),
    ]
    assert [one.object for one in found.history("U2")] == ["N1"]
    assert found.signals == (LIKED, SKIPPED)
    assert load_histories.notes == {"engagements left out as their object has no text": 1}


def test_the_history_comes_once_and_as_the_oldest_where_it_is_asked_for(mind):
    rows = (
        "1\tU1\t11/12/2019 2:14:46 PM\tN3 N2\tN1-0 N2-0\n"
        "2\tU1\t11/9/2019 12:05:00 AM\tN3 N2\tN1-1\n"
        "3\tU2\t11/12/2019 9:00:00 AM\t\tN1-1 N9-0\n"
    )
    found = mind(rows, untimed_history=True)
    assert [(one.object, one.signal) for one in found.history("U1")] == [
        ("N1", SKIPPED), ("N2", SKIPPED), ("N1", LIKED), ("N2", LIKED), ("N3", LIKED),
    ]  # fmt: skip
    assert found.count("U2") == 1


def test_of_two_files_the_history_of_the_earliest_impression_holds(load_histories, tmp_path):
    """The later file's history holds what was opened in the earlier file's impressions."""
    files = {
        "dev": (
            "1\tU1\t11/15/2019 8:00:00 AM\tN1 N2 N3\tN2-0\n2\tU2\t11/15/2019 8:00:00 AM\tN2\tN1-1\n"
        ),
        "train": (
            "1\tU1\t11/10/2019 9:00:00 AM\tN1 N2\tN3-1\n2\tU1\t11/9/2019 9:00:00 AM\tN1 N2\tN1-1\n"
        ),
    }
    for name, rows in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "behaviors.tsv").write_text(rows)
        (tmp_path / name / "news.tsv").write_text(NEWS)
    found = load_histories("gist_mind", tmp_path, untimed_history=True)
    assert [(one.object, one.signal) for one in found.history("U1")] == [
        ("N2", SKIPPED), ("N3", LIKED), ("N1", LIKED), ("N2", LIKED),
    ]  # fmt: skip
    assert [one.object for one in found.history("U2")] == ["N1", "N2"]
    few = load_histories("gist_mind", tmp_path, untimed_history=True, min_engagements=4)
    assert list(few.users) == ["U1"]
