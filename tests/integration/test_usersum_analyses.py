"""Runs of UserSumBench beside each other."""


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
