"""Single ratings: their errors by hand, and prompts of the user's own."""

from __future__ import annotations

import json

import pytest

HISTORIES = {
    "ann": [4.0, 4.0, 4.0, 2.0],
    "bob": [1.0, 3.0, 5.0],
}
"""Ann thinks 3.5 of things on the whole, Bob 3; the last of each is asked about."""

PREDICTED = {"ann": 3.0, "bob": 3.0}
MINE = """\
{% block user %}
Stars from {{ member.shown | length }} ratings for {{ query.title }}?
{% endblock %}
"""


@pytest.fixture
def rating(tmp_path, perrecs):
    """Runs the command on two people, of whom one rating each is asked for."""
    world = tmp_path / "world"
    world.mkdir()
    histories = {
        user: [{"parent_asin": f"{user}-{n}", "rating": one} for n, one in enumerate(ratings)]
        for user, ratings in HISTORIES.items()
    }
    items = {
        one["parent_asin"]: {"title": f"Book {one['parent_asin']}", "author": {"name": "Ivo"}}
        for history in histories.values()
        for one in history
    }
    asked = [
        {"user_id": user, **history[-1], "history_len": len(history) - 1}
        for user, history in histories.items()
    ]
    files = {"userid2history": histories, "parentasin2item": items, "sample_behavior": asked}
    for name, content in files.items():
        (world / f"{name}.json").write_text(json.dumps(content))
    return perrecs(tmp_path, str(world))


def answer(body):
    user = "ann" if "Book ann" in body["messages"][-1]["content"] else "bob"
    return json.dumps({"predicted_rating": PREDICTED[user]})


def test_the_errors_of_predicted_ratings_are_those_worked_out_by_hand(rating, serve):
    server = serve(rating, answer=answer)
    done = rating.run("perrec_rating").ok()
    (summary,) = done.json["summaries"]
    values = {name: metric["value"] for name, metric in summary["metrics"].items()}
    # Ann's 2 was taken for 3 and Bob's 5 for 3.
    assert values["mae"] == pytest.approx((1 + 2) / 2)
    assert values["rmse"] == pytest.approx(((1 + 4) / 2) ** 0.5)
    # Their own averages, 3.5 and 3, are 1.5 and 2 away; nobody else rated these things.
    assert values["mae_user_average"] == pytest.approx((1.5 + 2) / 2)
    assert values["rmse_user_average"] == pytest.approx(((2.25 + 4) / 2) ** 0.5)
    assert "ptc" not in values
    assert values.get("mae_item_average") is None
    assert {body["temperature"] for body in server.requests} == {0.0}
    for body in server.requests:
        prompt = body["messages"][-1]["content"]
        assert "## User Profile" not in prompt and "## User Average" not in prompt


def test_a_rating_that_cannot_be_read_has_no_error_and_is_counted(rating, serve):
    server = serve(rating, answer=lambda body: "none" if "Book ann" in str(body) else answer(body))
    done = rating.run("perrec_rating", "--set", "tries=2").ok()
    (summary,) = done.json["summaries"]
    metric = summary["metrics"]["mae"]
    assert metric["missing"] == {"rate/no_json": 1}
    assert (metric["value"], metric["n"]) == (None, 1)
    assert server.count == 2 + 1


def test_a_prompt_of_the_users_own_is_asked_instead(rating, serve):
    server = serve(answer=answer)
    rating.url, folder = server.url, rating.harness.folder
    (folder / "mine.j2").write_text(MINE)
    task = folder / "mine.yaml"
    task.write_text("task: mine\nextends: perrec_rating\nprompts:\n  rate.candidate: mine.j2\n")
    done = rating.run(str(task)).ok()
    asked = [body["messages"] for body in server.requests]
    assert sorted(one[-1]["content"] for one in asked) == [
        "Stars from 2 ratings for Book bob-2?",
        "Stars from 3 ratings for Book ann-3?",
    ]
    assert [len(one) for one in asked] == [1, 1]
    (summary,) = done.json["summaries"]
    assert summary["metrics"]["mae"]["value"] == pytest.approx((1 + 2) / 2)


def test_behaviours_are_drawn_where_the_data_has_no_list(true):
    perrec, *_ = true
    done = perrec.tool(
        "--model", "baseline", "--tasks", "perrec_rating", "--data", perrec.data, "--json",
        "--set", "behaviours=7",
    ).ok()  # fmt: skip
    assert done.json["summaries"][0]["units"] == 7
