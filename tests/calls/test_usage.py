"""Totals of calls and tokens, of one process and of several."""

from dataclasses import asdict

from harness.calls.budget import UsageBook, Use


def book(**calls: int) -> UsageBook:
    made = UsageBook()
    for stage, count in calls.items():
        made.of(stage, "judge").calls = count
    return made


def test_the_last_report_of_each_worker_counts_with_what_this_process_asked():
    driver = book(rate=1)
    driver.take("a", book(rate=2).as_json())
    driver.take("b", book(rate=10, ask=3).as_json())
    driver.take("a", book(rate=5).as_json())
    assert driver.as_json() == {
        "rate, judge": asdict(Use(calls=16)),
        "ask, judge": asdict(Use(calls=3)),
    }
    assert book(rate=1).as_json() == {"rate, judge": asdict(Use(calls=1))}


def test_every_count_is_summed():
    each = {name: number for number, name in enumerate(asdict(Use()), 1)}
    one = UsageBook()
    one.totals["rate", "judge"] = Use(**each)
    driver = UsageBook()
    driver.take("a", one.as_json())
    driver.take("b", one.as_json())
    assert driver.as_json() == {"rate, judge": {name: 2 * count for name, count in each.items()}}
