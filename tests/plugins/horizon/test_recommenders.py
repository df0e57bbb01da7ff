"""The networks: shapes, padding, causality, masks, training."""

import numpy as np
import pytest
from harness_horizon.recommenders.presets import (
    NETWORKS,
    PAPERS_BATCH,
    Hyper,
    Kind,
    hyper_of,
)
from harness_horizon.recommenders.training_data import validation_cases
from msgspec.structs import replace

from harness.analysis.analysis import no_progress
from harness.base.errors import DataError

torch = pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")

from harness_horizon.recommenders.layers import Recommender, negatives  # noqa: E402
from harness_horizon.recommenders.networks import (  # noqa: E402
    KINDS,
    BERT4Rec,
    network_from,
    new_network,
)
from harness_horizon.recommenders.trainer import mrr_of, train  # noqa: E402

TINY = Hyper(
    width=16, layers=2, heads=2, inner=16, dropout=0.0, length=8, session_dropout=0.0,
    item_dropout=0.0, batch=8, learning_rate=1e-2, epochs=3, patience=3, seed=7,
)  # fmt: skip
KNOWN = 12
CPU = torch.device("cpu")
HISTORIES = torch.tensor([[1, 2, 3, 4, 0, 0], [5, 6, 0, 0, 0, 0], [12, 11, 10, 9, 8, 7]])

each_network = pytest.mark.parametrize("kind", NETWORKS)


def network(kind: Kind, hyper: Hyper = TINY) -> Recommender:
    return new_network(kind, KNOWN, hyper).eval()


@each_network
@torch.no_grad()
def test_padding_changes_nothing(kind):
    made = network(kind)
    wider = torch.nn.functional.pad(HISTORIES, (0, 2))
    assert made(HISTORIES).shape == (3, KNOWN)
    assert torch.allclose(made(HISTORIES), made(wider), atol=1e-5)
    assert torch.allclose(made(HISTORIES)[:1], made(HISTORIES[:1, :4]), atol=1e-5)


@pytest.mark.parametrize("kind", ["sasrec", "gru4rec"])
@torch.no_grad()
def test_no_position_sees_a_later_item(kind):
    made = network(kind)
    changed = HISTORIES.clone()
    changed[2, 4:] = torch.tensor([1, 2])
    before, after = made.states(HISTORIES), made.states(changed)  # type: ignore[operator]
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[2, 4:], after[2, 4:])


@torch.no_grad()
def test_bert4rec_sees_earlier_and_later_items():
    made = network("bert4rec")
    assert isinstance(made, BERT4Rec)
    changed = HISTORIES.clone()
    changed[2, 5] = 1
    assert not torch.allclose(made.states(HISTORIES)[2, 0], made.states(changed)[2, 0])


@pytest.mark.parametrize("loss", ["ce", "bpr"])
def test_only_masked_positions_are_in_the_loss_of_bert4rec(loss, monkeypatch):
    made = network("bert4rec", replace(TINY, loss=loss))
    assert isinstance(made, BERT4Rec)
    states = made.states(HISTORIES).detach().requires_grad_()
    monkeypatch.setattr(made, "states", lambda _: states)
    chance = torch.Generator().manual_seed(1)
    hidden = made.hidden(HISTORIES, torch.Generator().manual_seed(1))
    made.loss(HISTORIES, HISTORIES[:, 0], chance).backward()
    assert states.grad is not None
    assert torch.equal(states.grad.abs().sum(dim=2) > 0, hidden)


def test_bert4rec_masks_items_and_never_padding():
    made = network("bert4rec", replace(TINY, mask_ratio=0.3, last_only=0.5))
    assert isinstance(made, BERT4Rec)
    chance = torch.Generator().manual_seed(3)
    drawn = torch.stack([made.hidden(HISTORIES, chance) for _ in range(4000)]).float()
    assert not drawn[:, HISTORIES == 0].any()
    assert (drawn.sum(dim=2) > 0).all()
    # Half of the histories lose only their last item, the others each item with the ratio.
    assert drawn[:, 0, 0].mean() == pytest.approx(0.5 * 0.3, abs=0.02)
    alone = 0.5 + 0.5 * 0.7**4 + 0.5 * 0.3 * (1 - 0.7**3) + 0.5 * 0.3 * 0.7**3
    assert drawn[:, 0, 3].mean() == pytest.approx(alone, abs=0.03)


@torch.no_grad()
def test_a_full_history_gives_way_to_the_mask():
    made = network("bert4rec", replace(TINY, length=6))
    first_changed = HISTORIES.clone()
    first_changed[2, 0] = 1
    assert torch.equal(made(HISTORIES)[2], made(first_changed)[2])
    assert torch.equal(made(HISTORIES)[0], made(HISTORIES[:1, :4])[0]) or torch.allclose(
        made(HISTORIES)[0], made(HISTORIES[:1, :4])[0], atol=1e-5
    )


def test_negatives_are_none_of_those_taken():
    chance = torch.Generator().manual_seed(0)
    for taken in (HISTORIES[:, :4], torch.tensor([[9], [7], [1]])):
        for _ in range(50):
            drawn = negatives(taken, KNOWN, 10, chance)
            assert drawn.min() >= 1 and drawn.max() <= KNOWN
            assert not (drawn[:, :, None] == taken[:, None, :]).any()


@torch.no_grad()
def test_core_scores_the_direction_of_a_history_and_not_its_length():
    made = network("core")
    one = made.encode(HISTORIES)
    assert torch.allclose(one.norm(dim=1), torch.full((3,), 1 / TINY.temperature), atol=1e-3)
    # A history of one item points where that item does, so that its cosine with it is 1.
    alone = made(torch.tensor([[4], [9]]))
    assert alone[0, 3].item() == pytest.approx(1 / TINY.temperature, rel=1e-4)
    assert alone[1, 8].item() == pytest.approx(1 / TINY.temperature, rel=1e-4)


@each_network
def test_ten_users_are_learnt_by_heart(kind, walks, tmp_path):
    epochs = 45 if kind == "bert4rec" else 30
    hyper = replace(TINY, width=32, inner=32, epochs=epochs, patience=epochs, batch=24, loss="ce")
    trained = train(kind, hyper, walks, tmp_path, no_progress, device=CPU)
    # CORE places a history among its own items, so that these stay before the next one.
    assert trained.best.mrr > (0.1 if kind == "core" else 0.9), trained.best
    assert trained.epochs[-1].loss < trained.epochs[0].loss / 2


@pytest.mark.parametrize(("kind", "loss"), [("sasrec", "ce"), ("bert4rec", "bpr")])
def test_a_seed_gives_the_same_loss_to_the_last_digit(kind, loss, walks, tmp_path):
    hyper = replace(TINY, dropout=0.2, batch=40, epochs=2, loss=loss)
    first = train(kind, hyper, walks, tmp_path / "a", no_progress, device=CPU)
    second = train(kind, hyper, walks, tmp_path / "b", no_progress, device=CPU)
    other = train(kind, replace(hyper, seed=8), walks, tmp_path / "c", no_progress, device=CPU)
    assert first.epochs == second.epochs != other.epochs
    assert all(np.array_equal(first.weights[name], second.weights[name]) for name in first.weights)


class Stopped(Exception):
    pass


def test_training_goes_on_after_the_last_epoch(walks, tmp_path):
    hyper = replace(TINY, dropout=0.2, epochs=5, patience=5)
    whole = train("sasrec", hyper, walks, tmp_path / "whole", no_progress, device=CPU)

    def stop(what: str, done: int, of: int | None = None) -> None:
        if what == "epoch 4: batches":
            raise Stopped

    with pytest.raises(Stopped):
        train("sasrec", hyper, walks, tmp_path / "parts", stop, device=CPU)
    begun = []
    resumed = train(
        "sasrec", hyper, walks, tmp_path / "parts", lambda *seen: begun.append(seen), device=CPU
    )
    assert begun[0][0] == "epoch 4: batches"
    assert resumed.epochs == whole.epochs
    assert all(np.array_equal(resumed.weights[one], whole.weights[one]) for one in whole.weights)


def test_other_settings_do_not_go_on(walks, tmp_path):
    train("sasrec", replace(TINY, epochs=1), walks, tmp_path, no_progress, device=CPU)
    with pytest.raises(DataError, match="other settings or another split"):
        train("sasrec", TINY, walks, tmp_path, no_progress, device=CPU)


def test_training_stops_early_and_keeps_the_best_epoch(walks, tmp_path):
    hyper = replace(TINY, epochs=100, patience=4, learning_rate=0.05, dropout=0.3)
    trained = train("sasrec", hyper, walks, tmp_path, no_progress, device=CPU)
    assert len(trained.epochs) == trained.best.number + 4 < 100
    kept = network_from("sasrec", hyper, trained.weights, len(walks.vocabulary))
    assert mrr_of(kept, validation_cases(walks), CPU) == trained.best.mrr


def test_a_batch_in_parts_changes_the_weights_alike(walks, tmp_path, monkeypatch):
    hyper = replace(TINY, batch=64)
    whole = train("sasrec", hyper, walks, tmp_path / "a", no_progress, device=CPU)
    monkeypatch.setattr("harness_horizon.recommenders.trainer.SCORES_AT_ONCE", 100)
    parts = train("sasrec", hyper, walks, tmp_path / "b", no_progress, device=CPU)
    assert [one.loss for one in parts.epochs] == pytest.approx(
        [one.loss for one in whole.epochs], rel=1e-3
    )


def test_the_published_settings_are_those_of_the_paper():
    made = hyper_of("gru4rec", "published")
    assert (made.width, made.layers, made.dropout, made.length) == (256, 3, 0.15, 100)
    assert (made.learning_rate, made.epochs, made.patience, made.seed) == (2e-5, 10, 10, 2025)
    assert (made.loss, made.negatives, made.batch) == ("bpr", 10, PAPERS_BATCH["gru4rec"])
    assert hyper_of("sasrec", "published").loss == "ce"
    assert hyper_of("sasrec", "published", loss="bpr").loss == "bpr"
    assert hyper_of("sasrec", "small").learning_rate == 1e-3
    assert set(KINDS) == set(NETWORKS)
