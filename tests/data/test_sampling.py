"""The choice of ids: pinned, nested, blind to order and to repeats."""

from builders.processes import run_python

from harness.data.dataset import choose

IDS = [f"u{n}" for n in range(100)]


def test_the_choice_is_pinned_and_the_same_in_every_process():
    here, of = choose(IDS, seed=0, most=4)
    assert (here, of) == (["u27", "u45", "u35", "u89"], 100)
    code = (
        "from harness.data.dataset import choose;"
        "print(choose({f'u{n}' for n in range(100)}, seed=0, most=4)[0])"
    )
    for hash_seed in ("1", "2"):
        assert run_python(code, PYTHONHASHSEED=hash_seed).strip() == str(here)


def test_order_and_repeats_do_not_matter():
    assert choose([*reversed(IDS), *IDS], seed=0, most=7) == choose(IDS, seed=0, most=7)


def test_the_seed_matters_and_no_bound_keeps_all():
    first, _ = choose(IDS, seed=0, most=None)
    second, _ = choose(IDS, seed=1, most=None)
    assert sorted(first) == sorted(second) == sorted(IDS)
    assert first != second


def test_a_chosen_id_stays_chosen_when_others_come_or_go():
    chosen, _ = choose(IDS, seed=0, most=10)
    fewer, _ = choose([one for one in IDS if one not in chosen[:5]], seed=0, most=5)
    assert fewer == chosen[5:]
