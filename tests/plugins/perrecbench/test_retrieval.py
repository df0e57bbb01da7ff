"""BM25 against rank_bm25, and what the published way of splitting texts finds and loses."""

import random

import numpy as np
import pytest
from harness_perrecbench.records import Behaviour, Thing
from harness_perrecbench.retrieval import behaviour_text, query_text, top
from rank_bm25 import BM25Okapi

WORDS = [f"w{number}" for number in range(60)]


def titled(*titles):
    return tuple(Behaviour(title=title, rating=5.0) for title in titles)


def found(behaviours, title, *, k=4, tokens="published"):
    chosen, _ = top(behaviours, Thing(title=title), k=k, tokens=tokens)
    return [behaviour.title for behaviour in chosen]


def random_texts(rng, texts):
    """Texts whose words are the more frequent the lower their number, some in almost every text."""
    return [
        [WORDS[int(len(WORDS) * rng.random() ** 2)] for _ in range(1 + int(12 * rng.random()))]
        for _ in range(texts)
    ]


@pytest.mark.parametrize("seed", range(10))
def test_scores_and_the_published_order_are_those_of_rank_bm25_with_a_stable_sort(seed):
    rng = random.Random(seed)
    behaviours = titled(*(" ".join(text) for text in random_texts(rng, 5 + int(50 * rng.random()))))
    query = Thing(title=" ".join([*random_texts(rng, 1)[0], "w0", "w0", "nowhere"]))
    published = BM25Okapi([behaviour_text(one).split() for one in behaviours])
    weights = published.get_scores(query_text(query).split(" "))
    best = np.argsort(weights, kind="stable")[::-1][:5]
    chosen, told = top(behaviours, query, k=5, tokens="published")
    assert chosen == tuple(behaviours[place] for place in best)
    assert told == pytest.approx([weights[place] for place in best], rel=1e-12)


def test_behaviours_and_queries_read_as_in_a_question():
    told = behaviour_text(Behaviour(title="Rye", author="A. Baker", rating=4.0))
    assert told == "### Item Title\nRye\n### Item Author\nA. Baker\n### User Rating\n4.0"
    told = behaviour_text(Behaviour(title="Rye", rating=5.0))
    assert told == "### Item Title\nRye\n### User Rating\n5.0"
    assert query_text(Thing(title="Rye", author="A. Baker")) == (
        "<|The Start of Query Item Information|>\n### Item Title\nRye\n### Item Author\nA. Baker\n"
        "<|The End of Query Item Information|>"
    )


def test_words_find_authors_and_titles_whole_and_pay_no_heed_to_case_and_marks():
    history = titled("sour apples", "loaf tins", "rye seeds", "plum jam", "wool socks")
    # "Title\nsour" and "loaf\n<|The" are no words of any document; "rye" stands between blanks.
    assert found(history, "sour rye loaf", k=1) == ["rye seeds"]
    in_words = found(history, "sour rye loaf", k=3, tokens="words")
    assert in_words == ["sour apples", "loaf tins", "rye seeds"]
    # Nothing but "Item" is found, which every document of this length holds alike.
    assert found(history, "sour loaf", k=5) == [one.title for one in history[::-1]]
    history = (
        Behaviour(title="Trains", author="ANN Baker", rating=1.0),
        Behaviour(title="Rye, and others!", author="Nobody", rating=2.0),
        *titled("Owls", "Geese", "Swans"),
    )
    by_author, weights = top(history, Thing(title="?", author="baker"), k=2, tokens="words")
    assert by_author == (history[0], history[1])
    assert weights[0] > weights[1] == 0
    assert top(history, Thing(title="(RYE)"), k=1, tokens="words")[0] == (history[1],)
    assert top((), Thing(title="rye"), k=4, tokens="published") == ((), ())
    assert top((), Thing(title="rye"), k=4, tokens="words") == ((), ())
    marks = titled("!", "?")
    assert top(marks, Thing(title="rye"), k=1, tokens="words") == (marks[:1], (0.0,))
