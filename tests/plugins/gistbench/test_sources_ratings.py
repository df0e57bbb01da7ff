"""Amazon, Goodreads and Yelp: stars as signals, and texts that are the items' own."""

from builders.texts import write_json_lines
from harness_gistbench.histories import Engagement
from harness_gistbench.records import SIGNALS

LOVED, FINE, _, BAD = SIGNALS
STARS = [(1.0, BAD), (2.0, BAD), (2.5, BAD), (3.0, FINE), (3.5, FINE), (4.5, FINE), (5.0, LOVED)]


def review(user, asin, rating, when):
    return {
        "rating": rating, "title": "Review title", "text": "Review text", "parent_asin": asin,
        "user_id": user, "timestamp": when,
    }  # fmt: skip


def product(asin, title, **more):
    return {"title": title, "store": None, "description": [], "parent_asin": asin, **more}


def test_amazon_stars_are_signals(load_histories, tmp_path):
    reviews = [review(f"u{stars}", "a", stars, 1) for stars, _ in STARS]
    write_json_lines(tmp_path / "Digital_Music.jsonl", reviews)
    write_json_lines(tmp_path / "meta_Digital_Music.jsonl", [product("a", "Blue")])
    found = load_histories("gist_amazon_music", tmp_path)
    for stars, signal in STARS:
        assert found.history(f"u{stars}") == [Engagement("a", "Blue", signal)]
    assert found.signals == (LOVED, FINE, BAD)


def test_amazon_texts_are_the_products_and_rows_without_one_are_counted(load_histories, tmp_path):
    write_json_lines(
        tmp_path / "Digital_Music.jsonl",
        [
            review("u", "a", 5.0, 1452650000000),
            review("u", "gone", 5.0, 1452660000000),
            review("u", "silent", 4.0, 1452670000000),
            review("u", "b", 2.0, 1552650000000),
        ],
    )
    write_json_lines(
        tmp_path / "meta_Digital_Music.jsonl",
        [
            product(
                "a", " Blue ", store="Joni  Mitchell", description=["Her fourth.", "A classic"]
            ),
            product("silent", "  "),
            product("b", "Hejira"),
            product("never-bought", "Mingus"),
        ],
    )
    found = load_histories("gist_amazon_music", tmp_path)
    assert found.history("u") == [
        Engagement("b", "Hejira", BAD),
        Engagement("a", "Blue | Joni Mitchell | Her fourth. | A classic", LOVED),
    ]
    assert {one.object for one in found.pool} == {"a", "b"}
    assert load_histories.notes == {"engagements left out as their object has no text": 2}


def test_amazon_ratings_without_reviews_will_do(load_histories, tmp_path):
    (tmp_path / "Digital_Music.csv").write_text(
        "user_id,parent_asin,rating,timestamp\nu,a,5.0,1\nu,b,3.0,2\n"
    )
    write_json_lines(
        tmp_path / "meta_Digital_Music.jsonl", [product("a", "Blue"), product("b", "Hejira")]
    )
    found = load_histories("gist_amazon_music", tmp_path)
    assert [one.signal for one in found.history("u")] == [FINE, LOVED]


def goodreads(folder, interactions, books):
    (folder / "goodreads_interactions.csv").write_text(
        "user_id,book_id,is_read,rating,is_reviewed\n" + interactions
    )
    (folder / "book_id_map.csv").write_text("book_id_csv,book_id\n948,11\n1000,12\n949,9\n")
    write_json_lines(folder / "goodreads_books.json", books)


def book(number, title, description=""):
    return {"book_id": number, "title": title, "description": description, "authors": []}


def test_goodreads_books_are_joined_by_their_list_and_unrated_ones_counted(
    load_histories, tmp_path
):
    goodreads(
        tmp_path,
        "0,948,1,5,0\n0,949,1,0,0\n0,1000,1,3,1\n0,77,1,4,0\n1,949,0,0,0\n0,949,1,2,0\n",
        [book("12", "Persuasion", "A novel."), book("9", "Ulysses"), book("11", "Emma")],
    )
    found = load_histories("gist_goodreads", tmp_path)
    assert list(found.users) == ["0"]
    assert found.history("0") == [
        Engagement("948", "Emma", LOVED),
        Engagement("1000", "Persuasion | A novel.", FINE),
        Engagement("949", "Ulysses", BAD),
    ]
    assert load_histories.notes == {
        "engagements left out for want of a rating": 2,
        "engagements left out as their object has no text": 1,
        "engagements in the order of the data, as none has a time": 3,
        "users left out with fewer than 1 engagements": 1,
    }


def test_yelp_texts_are_the_businesses(load_histories, tmp_path):
    def said(business, stars, date):
        return {"user_id": "u", "business_id": business, "stars": stars, "date": date}

    write_json_lines(
        tmp_path / "yelp_academic_dataset_review.json",
        [
            said("b1", 5.0, "2014-02-05 20:30:30"),
            said("b2", 4.0, "2018-07-07 22:09:11"),
            said("b1", 1.0, "2016-01-01 00:00:00"),
        ],
    )
    write_json_lines(
        tmp_path / "yelp_academic_dataset_business.json",
        [
            {"business_id": "b1", "name": "Turning Point", "city": "Reading", "state": "PA",
             "stars": 4.5, "categories": "Cafes, Breakfast & Brunch", "hours": None},
            {"business_id": "b2", "name": "Body Cycle", "city": "Ardmore", "state": "PA",
             "stars": 5.0, "categories": None, "hours": None},
        ],
    )  # fmt: skip
    turning_point = "Turning Point | Cafes, Breakfast & Brunch | Reading | PA"
    found = load_histories("gist_yelp", tmp_path)
    assert found.history("u") == [
        Engagement("b2", "Body Cycle | Ardmore | PA", FINE),
        Engagement("b1", turning_point, BAD),
        Engagement("b1", turning_point, LOVED),
    ]
