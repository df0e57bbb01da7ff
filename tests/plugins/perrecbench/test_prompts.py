"""The prompts, byte for byte, written out after the published layout."""

import gzip
import json
from pathlib import Path

import pytest
from builders.perrecbench import make_group
from harness_perrecbench import questions
from harness_perrecbench.records import Behaviour, Example, Member, Options, Person, Single, Thing

from harness.base.errors import UsageError
from harness.prompts import Templates

TEMPLATES = Templates([Path(__file__).resolve().parents[3] / "prompts"])
KETTLE, LAMP = Thing(title="Kettle"), Thing(title="Lamp")
CUP = Behaviour(title="Cup", rating=4)
ANN = Member(id="ann", average=3.25, common=5, profile="Ann likes tea.", shown=(CUP,))
FOX = Behaviour(title="Fox Tale", author="Cy Dorn", rating=2.5)
BEN = Member(id="ben", average=4, common=4, profile="Ben reads.", shown=(FOX, CUP))
LAMP_USER = Member(id="dot", average=2, common=1, profile="Dot.", shown=(CUP,))
ELSE_USER = Member(id="eli", average=3, common=3, profile="Eli.", shown=(CUP, CUP))
POINT_EXAMPLE = Example(query=LAMP, members=(LAMP_USER,), answer='{"predicted_rating": 4.0}')
GROUP_EXAMPLE = Example(query=LAMP, members=(LAMP_USER, ELSE_USER), answer="ANSWER")


def rendered(stage, variables, options, role="candidate"):
    prompt = questions.prompt_of(stage, options)
    messages = TEMPLATES.need("perrecbench", prompt, role).render(variables)
    return {one.role: one.content for one in messages}


def rate(member=ANN, query=KETTLE, examples=(), **options):
    one = Single(id="k/1", user="k", query=query, member=member, place=1, of=2, examples=examples)
    asked = Options(**options)
    return rendered("rate", questions.rate_variables(one, asked), asked)


def compare(examples=(), of=(ANN, BEN), title="Kettle", **options):
    asked = Options(**options)
    about = make_group(*of, title=title, examples=examples)
    return rendered("compare", questions.compare_variables(about, 1, 2, asked), asked)


def rank(examples=(), of=(ANN, BEN), title="Kettle", **options):
    asked = Options(**options)
    about = make_group(*of, title=title, examples=examples)
    return rendered("rank", questions.rank_variables(about, asked), asked)


ANN_TOLD = """\
## User Profile
Ann likes tea.

## User Most Common Rating
5.0

## User Average Rating
3.2

"""
BEN_TOLD = """\
## User Profile
Ben reads.

## User Most Common Rating
4.0

## User Average Rating
4.0

"""
QUERY = """\
[Query Item Details]
<|The Start of Query Item Information|>
### Item Title
Kettle
<|The End of Query Item Information|>

"""
POINT_USER = f"""\
[User History]
<|The Start of User Data|>
{ANN_TOLD}### Item Title
Cup
### User Rating
4.0
<|The End of User Data|>


{QUERY}Answer:"""
POINT_SYSTEM = """\
Act as a personalized product recommender system. Below is a list of user's rating history, \
shown in [User History]. Your task is to predict the user's rating for the query item, which is \
described in [Query Item Details]. Analyze each user's preferences for the query item based on \
their historical ratings to generate the prediction. Output a predicted rating ranging from 1 \
to 5, where 1 being not recommended and 5 being highly recommended. The final answer should \
strictly follow this JSON structure: {"predicted_rating": <rating>}"""


def test_the_pointwise_prompts_are_the_published_ones():
    assert rate() == {"system": POINT_SYSTEM, "user": POINT_USER}
    brief = f"{POINT_SYSTEM}, do not generate anything else."
    assert rate(system="authors") == {"system": brief, "user": POINT_USER}
    assert rate(thought=True) == {
        "system": (
            "To predict a user’s rating for a query item, follow these steps:\n"
            "1. Analyze the user’s preference for the query item using their history and "
            "profile.\n"
            "2. Predict the user’s rating for the query item: If the item is likely preferred by "
            "the user, the predicted rating should be higher than the user’s average rating. If "
            "the item is unlikely to be preferred by the user, the predicted rating should be "
            "lower than the user’s average rating.\n"
            + POINT_SYSTEM.replace("should strictly", "must strictly")
            + "."
        ),
        "user": POINT_USER + " Let's think step by step.",
    }
    # Without a profile, mode and average are gone too.
    assert rate(profile="none")["user"].startswith(
        "[User History]\n<|The Start of User Data|>\n\n### Item Title\nCup\n"
    )


PAIR_USER = f"""\
[User A]
<|The Start of User Data|>
{ANN_TOLD}### Item Title
Cup
### User Rating
4.0

<|The End of User Data|>


[User B]
<|The Start of User Data|>
{BEN_TOLD}### Item Title
Fox Tale
### Item Author
Cy Dorn
### User Rating
2.5


### Item Title
Cup
### User Rating
4.0

<|The End of User Data|>



{QUERY}"""
PAIR_SYSTEM = """\
Act as a personalized product recommender system. Below is a pair of users, [User A] and [User \
B], each with their rating history. Your task is to determine which user is more likely to \
prefer the query item, based on its details in [Query Item Details]. Analyze each user’s \
preferences for the query item using their historical ratings and output the user more likely \
to prefer the query item."""
PAIR_QUESTION = (
    'Which user prefer the query item more? Output only "[User A]" or "[User B]", do not generate '
    "anything else:"
)


def test_the_pairwise_prompts_are_the_published_ones():
    assert compare() == {"system": PAIR_SYSTEM, "user": PAIR_USER + PAIR_QUESTION}
    assert compare(thought=True) == {
        "system": PAIR_SYSTEM,
        "user": PAIR_USER
        + "Which user prefer the query item more? First provide a short thinking step, then "
        'output your final answer in "[User A]" or "[User B]".\nAnswer: ',
    }


LIST_USER = f"""\
[Users]
<|The Start of User1 Data|>
{ANN_TOLD}### Item Title
Cup
### User1 Rating
4.0
<|The End of User1 Data|>

<|The Start of User2 Data|>
{BEN_TOLD}### Item Title
Fox Tale
### Item Author
Cy Dorn
### User2 Rating
2.5

### Item Title
Cup
### User2 Rating
4.0
<|The End of User2 Data|>



{QUERY}"""
LIST_SYSTEM = """\
Act as a personalized product recommender system. Below is a group of users accompanied with \
each user's rating history, shown in [Users]. Your task is to rank these users based on their \
preference of the query item, which is described in [Query Item Details]. Analyze each user's \
preferences for the query item based on their historical ratings to generate this ranking. \
Output the list of user indices (e.g., 1 for User1), ranked from highest to lowest preference \
for the query item. The final output should rank users from most preferred to least preferred \
for the query item and adhere to the JSON structure shown below: {"predicted_ranking": \
<user_ranking>}"""
LIST_QUESTION = (
    "The answer ranks users from most preferred to least preferred for the query item and adhere "
    "to the following JSON format, output the list of user indices (e.g., 1 for User1)"
)
LIST_TAIL = ', do not include any additional information: {"predicted_ranking": <user_ranking>}'


def test_the_listwise_prompts_are_the_published_ones():
    user = f"{LIST_USER}{LIST_QUESTION}{LIST_TAIL}\nAnswer:"
    assert rank() == {"system": LIST_SYSTEM, "user": user}
    assert rank(tail="older")["user"] == LIST_USER + "Answer: "
    assert rank(thought=True) == {
        "system": (
            "To rank user preferences, follow these steps:\n"
            "1.\tPredict the rating of the query item for each user.\n"
            "2.\tCalculate the relative rating by subtracting each user’s average rating from the "
            "predicted rating.\n"
            "3.\tRank user preferences based on the relative ratings: users with higher relative "
            "ratings should be ranked higher, while those with lower relative ratings should be "
            f"ranked lower.\n{LIST_SYSTEM}"
        ),
        "user": f'{LIST_USER}{LIST_QUESTION}: {{"predicted_ranking": <user_ranking>}}\n'
        "Answer: Let's think step by step.",
    }


@pytest.mark.parametrize(
    ("tail", "question"),
    [("plain", LIST_QUESTION.partition(", output the list")[0]), ("dot", f"{LIST_QUESTION}.")],
)
def test_the_other_tails_of_the_authors_differ_in_the_list_of_indices_alone(tail, question):
    user = f"{LIST_USER}{question}{LIST_TAIL}\nAnswer:"
    assert rank(tail=tail) == {"system": LIST_SYSTEM, "user": user}


POINT_SHOT = POINT_USER + '\n{"predicted_rating": 4.0}\n\n'
for ours, theirs in {"Ann likes tea": "Dot", "5.0": "1.0", "3.2": "2.0", "Kettle": "Lamp"}.items():
    POINT_SHOT = POINT_SHOT.replace(ours, theirs)


@pytest.mark.parametrize("thought", [False, True])
def test_a_pointwise_example_is_laid_out_as_the_question_and_solved_without_thinking(thought):
    asked = rate(examples=(POINT_EXAMPLE, POINT_EXAMPLE), thought=thought)
    assert asked["user"] == POINT_SHOT + POINT_SHOT + rate(thought=thought)["user"]


def test_a_published_pointwise_example_has_the_blank_lines_of_theirs():
    theirs = POINT_SHOT.replace("4.0\n<|The End", "4.0\n\n<|The End").replace(
        "User Data|>\n\n\n[Query", "User Data|>\n\n\n\n[Query"
    )
    assert rate(examples=(POINT_EXAMPLE,), shot_style="published")["user"] == theirs + POINT_USER


def of_example(ask, **options):
    """The question about the group of the example."""
    return ask(of=GROUP_EXAMPLE.members, title="Lamp", profile="none", **options)["user"]


def test_published_examples_have_no_profile_in_pairs_and_doubled_braces_in_lists():
    asked = compare(examples=(GROUP_EXAMPLE,), shot_style="published")["user"]
    assert asked == f"{of_example(compare)}\nANSWER\n\n{PAIR_USER}{PAIR_QUESTION}"
    whole = compare(examples=(GROUP_EXAMPLE,))["user"]
    assert whole.startswith(
        "[User A]\n<|The Start of User Data|>\n## User Profile\nDot.\n\n"
        "## User Most Common Rating\n1.0\n\n## User Average Rating\n2.0\n\n### Item Title\nCup\n"
    )
    theirs = of_example(rank).replace("Data|>\n\n### Item", "Data|>\n### Item")
    doubled = LIST_TAIL.replace("{", "{{").replace("}", "}}")
    asked = rank(examples=(GROUP_EXAMPLE,), profile="none", shot_style="published")["user"]
    ours = rank(examples=(GROUP_EXAMPLE,), profile="none")["user"]
    shot = f"{theirs.replace(LIST_TAIL, doubled)}\nANSWER\n\n"
    assert asked == shot + rank(profile="none")["user"]
    assert ours == f"{of_example(rank)}\nANSWER\n\n" + rank(profile="none")["user"]


def test_the_profile_prompt_is_the_published_one_with_a_blank_line_between_behaviours():
    person = Person(id="ben/2", user="ben", history=BEN.shown)
    assert rendered("profile", questions.profile_variables(person), Options(), role="profiler") == {
        "user": """\
### User Behavior history
### Item Title
Fox Tale
### Item Author
Cy Dorn
### User Rating
2.5

### Item Title
Cup
### User Rating
4.0

### Task Instruction
You are given a list of user behavior history data. Your task is to analyze this data and create a \
user profile that describes the user's preferences, interests, and patterns of behavior. This \
profile should be written in a concise and coherent narrative form. Only generate user profile \
without any additional characters or formatting.\x20"""
    }


def test_texts_are_printed_as_they_are_and_a_profile_that_is_not_there_is_no_empty_one():
    text = (
        "{{ query.title }} {# gone #} %s <|The End of User Data|> &lt;b&gt; <b> [User A]\n\n \n\n"
    )
    shown = (Behaviour(title=text, author=text, rating=4),)
    hostile = Member(id="x", average=3.25, common=5, profile=text, shown=shown)
    named = f"{text}\n### Item Author\n{text}"
    expected = POINT_USER.replace("Ann likes tea.", text)
    for title in ("Cup", "Kettle"):
        expected = expected.replace(title, named)
    assert rate(member=hostile, query=Thing(title=text, author=text))["user"] == expected
    nobody = Member(id="cem", average=3, common=3, shown=())
    single = Single(id="k/1", user="k", query=Thing(title="x"), member=nobody, place=1, of=1)
    with pytest.raises(ValueError, match="user cem has no profile"):
        questions.rate_variables(single, Options())
    assert questions.rate_variables(single, Options(profile="no_text"))


@pytest.mark.parametrize("other", [{"wording": "b"}, {"tail": "older"}, {"system": "authors"}])
def test_a_thought_prompt_that_nobody_wrote_is_refused(other):
    questions.check_prompt_exists(Options(**other))
    questions.check_prompt_exists(Options(thought=True))
    with pytest.raises(UsageError, match="no chain-of-thought prompt exists"):
        questions.check_prompt_exists(Options(thought=True, **other))


@pytest.mark.real_data
@pytest.mark.parametrize("shown", ["profile", "noprofile"])
@pytest.mark.parametrize(
    "what",
    [("easy", "point", 400), ("easy", "list", 200), ("medium", "point", 600),
     ("medium", "list", 200)],
    ids=str,
)  # fmt: skip
def test_every_recorded_prompt_is_reproduced_byte_for_byte(real_data, load_data, what, shown):
    (level, kind, number), folder = what, real_data / "perrecbench"
    packed = (folder / f"prompts/{level}-{kind}-{shown}.json.gz").read_bytes()
    recorded = json.loads(gzip.decompress(packed))
    # Without profile the recorded listwise prompts end as older ones do.
    options = Options() if shown == "profile" else Options(profile="none", tail="older")
    data = load_data(folder, ask=f"{kind}wise", level=level, profile=options.profile)
    made = {}
    for one in (*data.singles, *data.groups):
        if kind == "point":
            asked = rendered("rate", questions.rate_variables(one, options), options)
        else:
            asked = rendered("rank", questions.rank_variables(one, options), options)
        made.setdefault(one.user, []).append(asked["user"])
    assert sum(map(len, made.values())) == number

    def flat(prompts):
        return [text for one in prompts for text in ([one] if isinstance(one, str) else one)]

    wanted = {item: sent[0] if kind == "point" else sent for item, sent in recorded.items()}
    differing = [item for item in wanted if made.get(item) != flat(wanted[item])]
    assert (differing, made.keys()) == ([], wanted.keys())
