"""Stage 2: claims out of interests, and the judge's verdict on their evidence."""

from builders.gistbench import LIKED, Desk, make_claim, make_prediction, make_window, recorded
from harness_gistbench.records import Evidence, Kept, Line, Options
from harness_gistbench.stages.verify import claims, verify

from harness.contracts.judge import Select, Selected

WORDING = {"thing": "video", "things": "videos"}


def window(user, objects):
    lines = (Line(n, one, LIKED, f"text of {one}") for n, one in enumerate(objects, start=1))
    return make_window(*lines, user=user, signals=(LIKED,))


def test_every_interest_is_a_claim_and_much_evidence_is_split():
    said = make_prediction({"Opera": (), "Jazz": (2, 1)})
    upstreams = {"predict": recorded([(window("ada", "ab"), said)])}

    cited = [Evidence(one, f"text of {one}", (LIKED,)) for one in "ba"]
    assert list(claims(upstreams, None, Options())) == [
        make_claim(1, "Opera"),
        make_claim(2, "Jazz", cited),
    ]
    said = make_prediction({"Jazz": (1, 2, 3, 4, 5)})
    upstreams = {"predict": recorded([(window("ada", "abcde"), said)])}

    found = list(claims(upstreams, None, Options(evidence_a_question=2)))

    assert [one.id for one in found] == ["ada/1/1", "ada/1/2", "ada/1/3"]
    assert [[e.object for e in one.evidence] for one in found] == [["a", "b"], ["c", "d"], ["e"]]


async def test_the_judge_sees_the_interest_and_the_texts_alone_cut_and_counted():
    texts = {"a": "a long\n title", "b": "short"}
    claim = make_claim(1, "Jazz", (Evidence(id, text, (LIKED,)) for id, text in texts.items()))
    scripted = Desk(Selected(chosen=(1,), rung="text", unknown=2, repeated=1), text_limit=None,
                    **WORDING)  # fmt: skip

    assert await verify(claim, scripted) == Kept(positions=(1,), unknown=2, repeated=1)
    assert scripted.asked == [
        (
            "judge",
            Select(
                prompt="verify",
                subject="Jazz",
                options=("a long title", "short"),
                variables=WORDING,
            ),
        )
    ]
    scripted = Desk(Selected(chosen=(), rung="text"), text_limit=6, **WORDING)

    assert await verify(claim, scripted) == Kept(positions=(), cut=1)
    assert scripted.asked[0][1].options == ("a long", "short")


async def test_a_claim_without_evidence_needs_no_judge():
    scripted = Desk(text_limit=None, **WORDING)

    assert await verify(make_claim(1, "Opera"), scripted) == Kept(positions=())
    assert scripted.asked == []
