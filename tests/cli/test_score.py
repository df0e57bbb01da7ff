from harness.cli.score import score
from harness.scoring.score_run import read_summary


def scored(*arguments):
    code: int = score.main(arguments, standalone_mode=False)
    return code


def test_finished_tasks_are_scored_and_unfinished_ones_named(kept_run, toy_plugin, capsys):
    assert scored(str(kept_run.path)) == 1
    out, err = capsys.readouterr()
    assert "toy" in out
    assert "many" in out
    assert "2.000" in out
    assert "task 'later' is not finished" in err
    assert "stages with items that have no record: name" in err
    summary = read_summary(kept_run.summary("toy"))
    assert summary is not None
    assert (summary.metrics["many"].value, summary.metrics["many"].n) == (2.0, 1)
    assert summary.metrics["many"].missing == {"ValueError": 1, "no_json": 1}
    assert not kept_run.summary("later").exists()


def test_a_run_that_is_not_there_is_told_with_the_newest_and_keeps_no_other_from_its_scores(
    kept_run, toy_plugin, capsys
):
    beside = kept_run.path.parent
    (beside / "zzz-no-run").mkdir()
    assert scored(str(beside / "none-of-that-kind"), str(kept_run.path)) == 1
    assert f"to do:    the newest run is {kept_run.path}\n" in capsys.readouterr().err
    assert kept_run.summary("toy").exists()


def test_a_run_at_work_is_left_alone(kept_run, toy_plugin):
    kept_run.lock()
    try:
        assert scored(str(kept_run.path)) == 1
    finally:
        kept_run.unlock()
    assert not kept_run.summary("toy").exists()


def test_a_missing_plugin_is_named(kept_run, capsys):
    assert scored(str(kept_run.path)) == 1
    assert "toybench" in capsys.readouterr().err
