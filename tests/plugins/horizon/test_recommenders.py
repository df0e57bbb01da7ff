"""The networks: shapes, padding, causality, masks, training."""

import numpy as np
import pytest
from harness_horizon.recommenders.presets import NETWORKS, Hyper
from harness_horizon.recommenders.training_data import validation_cases
from msgspec.structs import replace

from harness.analysis.analysis import no_progress
from harness.base.errors import DataError

from .conftest import made_data

torch = pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")

from harness_horizon.recommenders.layers import negatives  # noqa: E402
from harness_horizon.recommenders.networks import KINDS, network_from, new_network  # noqa: E402
from harness_horizon.recommenders.trainer import mrr_of, train  # noqa: E402

TINY = Hyper(
    width=16, layers=2, heads=2, inner=16, dropout=0.0, length=8, session_dropout=0.0,
    item_dropout=0.0, batch=8, learning_rate=1e-2, epochs=3, patience=3, seed=7,
)  # fmt: skip
KNOWN = 12
ROWS = [[(start * 8 + step) * 5 + 3 for step in range(8)] for start in range(10)]
WALKS = made_data(ROWS, [row[:7] for row in ROWS])
"""Ten users who walk through things of their own; a part of this is asked."""
CPU = torch.device("cpu")
HISTORIES = torch.tensor([[1, 2, 3, 4, 0, 0], [5, 6, 0, 0, 0, 0], [12, 11, 10, 9, 8, 7]])
each_network = pytest.mark.parametrize("kind", NETWORKS)


def network(kind, hyper=TINY):
    return new_network(kind, KNOWN, hyper).eval()


def fit(kind, hyper, folder, progress=no_progress):
    return train(kind, hyper, WALKS, folder, progress, device=CPU)


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
    before, after = made.states(HISTORIES), made.states(changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[2, 4:], after[2, 4:])


@torch.no_grad()
def test_bert4rec_sees_earlier_and_later_items_and_a_full_history_gives_way_to_the_mask():
    made = network("bert4rec")
    changed = HISTORIES.clone()
    changed[2, 5] = 1
    assert not torch.allclose(made.states(HISTORIES)[2, 0], made.states(changed)[2, 0])
    made = network("bert4rec", replace(TINY, length=6))
    first_changed = HISTORIES.clone()
    first_changed[2, 0] = 1
    assert torch.equal(made(HISTORIES)[2], made(first_changed)[2])
    assert torch.allclose(made(HISTORIES)[0], made(HISTORIES[:1, :4])[0], atol=1e-5)


@pytest.mark.parametrize("loss", ["ce", "bpr"])
def test_only_masked_positions_are_in_the_loss_of_bert4rec(loss, monkeypatch):
    made = network("bert4rec", replace(TINY, loss=loss))
    states = made.states(HISTORIES).detach().requires_grad_()
    monkeypatch.setattr(made, "states", lambda _: states)
    chance = torch.Generator().manual_seed(1)
    hidden = made.hidden(HISTORIES, torch.Generator().manual_seed(1))
    made.loss(HISTORIES, HISTORIES[:, 0], chance).backward()
    assert states.grad is not None
    assert torch.equal(states.grad.abs().sum(dim=2) > 0, hidden)


def test_bert4rec_masks_items_and_never_padding_and_negatives_are_none_of_those_taken():
    made = network("bert4rec", replace(TINY, mask_ratio=0.3, last_only=0.5))
    chance = torch.Generator().manual_seed(3)
    drawn = torch.stack([made.hidden(HISTORIES, chance) for _ in range(4000)]).float()
    assert not drawn[:, HISTORIES == 0].any()
    assert (drawn.sum(dim=2) > 0).all()
    # Half of the histories lose only their last item, the others each item with the ratio.
    assert drawn[:, 0, 0].mean() == pytest.approx(0.5 * 0.3, abs=0.02)
    alone = 0.5 + 0.5 * 0.7**4 + 0.5 * 0.3 * (1 - 0.7**3) + 0.5 * 0.3 * 0.7**3
    assert drawn[:, 0, 3].mean() == pytest.approx(alone, abs=0.03)
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
    alone = made(torch.tensor([[4], [9]]))[[0, 1], [3, 8]]
    assert alone.tolist() == pytest.approx([1 / TINY.temperature] * 2, rel=1e-4)


@each_network
def test_ten_users_are_learnt_by_heart(kind, tmp_path):
    epochs = 45 if kind == "bert4rec" else 30
    hyper = replace(TINY, width=32, inner=32, epochs=epochs, patience=epochs, batch=24, loss="ce")
    trained = fit(kind, hyper, tmp_path)
    # CORE places a history among its own items, so that these stay before the next one.
    assert trained.best.mrr > (0.1 if kind == "core" else 0.9), trained.best
    assert trained.epochs[-1].loss < trained.epochs[0].loss / 2


@pytest.mark.parametrize(("kind", "loss"), [("sasrec", "ce"), ("bert4rec", "bpr")])
def test_a_seed_gives_the_same_loss_to_the_last_digit(kind, loss, tmp_path):
    hyper = replace(TINY, dropout=0.2, batch=40, epochs=2, loss=loss)
    first = fit(kind, hyper, tmp_path / "a")
    second = fit(kind, hyper, tmp_path / "b")
    other = fit(kind, replace(hyper, seed=8), tmp_path / "c")
    assert first.epochs == second.epochs != other.epochs
    assert all(np.array_equal(first.weights[name], second.weights[name]) for name in first.weights)


class Stopped(Exception):
    pass


def test_training_goes_on_after_the_last_epoch(tmp_path):
    hyper = replace(TINY, dropout=0.2, epochs=5, patience=5)
    whole = fit("sasrec", hyper, tmp_path / "whole")

    def stop(what, done, of=None):
        if what == "epoch 4: batches":
            raise Stopped

    with pytest.raises(Stopped):
        fit("sasrec", hyper, tmp_path / "parts", stop)
    begun = []
    resumed = fit("sasrec", hyper, tmp_path / "parts", lambda *seen: begun.append(seen))
    assert begun[0][0] == "epoch 4: batches"
    assert resumed.epochs == whole.epochs
    assert all(np.array_equal(resumed.weights[one], whole.weights[one]) for one in whole.weights)
    with pytest.raises(DataError, match="other settings or another split"):
        fit("sasrec", TINY, tmp_path / "parts")


def test_training_stops_early_and_parts_of_a_batch_change_the_weights_alike(tmp_path, monkeypatch):
    assert set(KINDS) == set(NETWORKS)
    hyper = replace(TINY, epochs=100, patience=4, learning_rate=0.05, dropout=0.3)
    trained = fit("sasrec", hyper, tmp_path)
    assert len(trained.epochs) == trained.best.number + 4 < 100
    kept = network_from("sasrec", hyper, trained.weights, len(WALKS.vocabulary))
    assert mrr_of(kept, validation_cases(WALKS), CPU) == trained.best.mrr
    hyper = replace(TINY, batch=64)
    whole = fit("sasrec", hyper, tmp_path / "a")
    monkeypatch.setattr("harness_horizon.recommenders.trainer.SCORES_AT_ONCE", 100)
    parts = fit("sasrec", hyper, tmp_path / "b")
    losses = [[one.loss for one in each.epochs] for each in (parts, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
