"""What a run of UserSumBench prints, and runs of it beside each other."""


def test_a_run_prints_table_4_at_its_end(harness):
    command = ("--model", "baseline", "--tasks", "usersum", "--data", "sample", "--limit", "3")
    lines = harness.here(*command).ok().out.splitlines()
    assert "usersum (5 tasks)" in lines
    start = lines.index("Table 4: MovieLens, baseline")
    assert [line.split()[0] for line in lines[start + 4 : start + 11]] == [
        "other", "none", "raw_timeline", "single_step", "hierarchy_critique", "popular,", "random,",
    ]  # fmt: skip
    assert len(lines) <= 40
    text = " ".join(harness.here("show", "latest").ok().out.split())
    assert text.count("Table 4: MovieLens, baseline") == 2  # ours, and beside the published one
    assert "single_step, hierarchy_critique: not comparable: bundled sample data" in text
    assert "limit unknown" in text


def answer(body):
    asked = body["messages"][-1]["content"]
    return "A" if "with its letter" in asked else f"The user likes {len(asked)} teas."


def test_two_models_are_compared_each_with_itself_as_its_predictor(harness, serve):
    serve(harness, answer=answer)
    task = "usersum_movielens"
    for model, more in (("one", ()), ("two", ()), ("apart", ("--role", "predictor=baseline"))):
        args = f"base_url={harness.url},model={model}"
        harness.here(
            "--model", "openai", "--model_args", args, "--tasks", task, "--data", "sample",
            "--limit", "3", "--max_failures", "1", "--name", model, *more,
        ).ok()  # fmt: skip
    said = harness.here("compare", "one", "two", "apart", "--gate", f"{task}.qm>-1.5",
                        "--against", "two")  # fmt: skip
    verdict, head, _, columns, *lines = said.out.splitlines()
    assert verdict == "undecided on usersum_movielens"
    assert head == (
        "2 runs on the units that all of them share; difference: one − two; "
        "predictor: the candidate"
    )
    assert columns.split()[:4] == ["task", "metric", "one", "two"]
    assert "not compared: apart: predictor's name default against the candidate" in lines
    alone = harness.here("compare", "one", "two", "--gate", f"{task}.qm>-1.5").ok()
    assert "holds" in alone.out
    nothing = harness.here("compare", "one", "apart")
    assert nothing.code == 1
    assert "nothing was compared" in nothing.err
    assert harness.here("compare", "one", "apart", "--force").code == 0
