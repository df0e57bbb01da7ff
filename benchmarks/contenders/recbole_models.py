"""NDCG@10 of HORIZON's four recommenders and of RecBole's, trained alike on one toy log.

RecBole 1.2.1 is broken against today's packages, so it needs an environment of its own:

    python -m venv /tmp/recbole && /tmp/recbole/bin/pip install torch==2.13.0
    /tmp/recbole/bin/pip install recbole==1.2.1 'setuptools<81' 'numpy<2' 'pandas<3'
    python benchmarks/contenders/recbole_models.py log /tmp/toy
    python benchmarks/contenders/recbole_models.py ours /tmp/toy
    /tmp/recbole/bin/python benchmarks/contenders/recbole_models.py recbole /tmp/toy
    python benchmarks/contenders/recbole_models.py compare /tmp/toy

Both train on a case for each prefix, validate with the item before the last one, keep the epoch
with the best MRR@10 and rank all items for the last one. They agree if the means of three seeds
differ by at most two pooled standard errors, or by 5%.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from random import Random
from statistics import mean, variance
from typing import Any

USERS, ITEMS, LENGTH = 400, 200, 20
SEEDS = (1, 2, 3)
WIDTH, LAYERS, HEADS, INNER, DROPOUT = 32, 2, 2, 64, 0.2
BATCH, RATE, EPOCHS = 256, 5e-3, 25
KINDS = {"sasrec": "SASRec", "bert4rec": "BERT4Rec", "gru4rec": "GRU4Rec", "core": "CORE"}
RUNS = [*((kind, "ce") for kind in KINDS), ("gru4rec", "bpr")]
"""Without BERT4Rec and negatives: RecBole draws one for each mask, whatever is asked for."""


def write_log(folder: Path) -> None:
    """Users who mostly go on to the next of the items, in the layout of RecBole."""
    rng, lines = Random(0), ["user_id:token\titem_id:token\ttimestamp:float"]
    for user in range(USERS):
        item = rng.randrange(ITEMS)
        for time in range(rng.randrange(5, 16)):
            lines.append(f"{user}\t{item}\t{time}")
            item = (item + 1) % ITEMS if rng.random() < 0.6 else int(ITEMS * rng.random() ** 2)
    (folder / "toy").mkdir(parents=True, exist_ok=True)
    (folder / "toy" / "toy.inter").write_text("\n".join(lines) + "\n")


def read_log(folder: Path) -> list[list[int]]:
    """The items of each user, oldest first."""
    found: dict[str, list[int]] = {}
    for line in (folder / "toy" / "toy.inter").read_text().splitlines()[1:]:
        user, item, _ = line.split("\t")
        found.setdefault(user, []).append(int(item))
    return list(found.values())


def ours(folder: Path, kind: str, loss: str, seed: int) -> float:
    """NDCG@10 of our network."""
    import numpy as np
    import torch
    from harness_horizon.ranking import expected_ranks, metrics_of
    from harness_horizon.recommenders.networks import network_from
    from harness_horizon.recommenders.presets import Hyper
    from harness_horizon.recommenders.trainer import train
    from harness_horizon.recommenders.training_data import Histories, TrainingData, validation_cases

    torch.set_num_threads(1)

    def histories(rows: list[list[int]]) -> Histories:
        offsets = np.cumsum([0, *map(len, rows)])
        return Histories(offsets, np.array([item for row in rows for item in row]))

    rows = read_log(folder)
    train_part = histories([row[:-2] for row in rows])
    data = TrainingData(train_part, histories([row[:-1] for row in rows]), "toy")
    hyper = Hyper(
        width=WIDTH, layers=1 if kind == "gru4rec" else LAYERS, heads=HEADS, inner=INNER,
        dropout=DROPOUT, length=LENGTH, loss=loss, batch=BATCH, learning_rate=RATE,
        epochs=EPOCHS, patience=EPOCHS, seed=seed,
    )  # fmt: skip
    out = folder / "ours" / f"{kind}-{loss}-{seed}"
    made = train(kind, hyper, data, out, lambda *_: None, device=torch.device("cpu"))
    network = network_from(kind, hyper, made.weights, len(data.vocabulary))
    asked = TrainingData(train_part, histories(rows), "toy")
    ranks = []
    with torch.no_grad():
        for given, targets in validation_cases(asked).batches(512, LENGTH):
            scores = network(torch.from_numpy(given)).numpy()
            own = scores[np.arange(len(targets)), targets - 1][:, None]
            found = expected_ranks((scores > own).sum(1), (scores == own).sum(1))
            ranks += np.where(targets > 0, found, np.nan).tolist()
    return float(metrics_of(ranks)["ndcg@10"].mean())


def theirs(folder: Path, kind: str, loss: str, seed: int) -> float:
    """NDCG@10 of RecBole's network."""
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    import torch
    from recbole.quick_start import run_recbole

    torch.set_num_threads(1)
    negatives = {"distribution": "uniform", "sample_num": 10} if loss == "bpr" else None
    settings: dict[str, Any] = {
        "data_path": str(folder), "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
        "MAX_ITEM_LIST_LENGTH": LENGTH, "train_neg_sample_args": negatives,
        "loss_type": loss.upper(), "hidden_size": WIDTH, "embedding_size": WIDTH,
        "n_layers": LAYERS, "num_layers": 1, "n_heads": HEADS, "inner_size": INNER,
        "hidden_dropout_prob": DROPOUT, "attn_dropout_prob": DROPOUT, "dropout_prob": DROPOUT,
        "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "mode": "full",
                      "group_by": "user"},
        "metrics": ["NDCG", "MRR", "Recall"], "topk": [10], "valid_metric": "MRR@10",
        "epochs": EPOCHS, "stopping_step": EPOCHS, "train_batch_size": BATCH,
        "eval_batch_size": 4096, "learning_rate": RATE, "seed": seed, "reproducibility": True,
        "use_gpu": False, "show_progress": False, "state": "ERROR",
        "checkpoint_dir": str(folder / "recbole"),
    }  # fmt: skip
    found = run_recbole(model=KINDS[kind], dataset="toy", config_dict=settings)
    return float(found["test_result"]["ndcg@10"])


def measure(side: str, folder: Path) -> None:
    """Write NDCG@10 of each network, loss and seed; what is there is not trained again."""
    file = folder / f"{side}.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    for seed in SEEDS:
        for kind, loss in RUNS:
            name = f"{kind} {loss} {seed}"
            if name not in found:
                found[name] = (ours if side == "ours" else theirs)(folder, kind, loss, seed)
                file.write_text(json.dumps(found, indent=1))
                print(name, f"{found[name]:.4f}", flush=True)


def compare(folder: Path) -> None:
    """Print both means of each network, their difference, and whether they agree."""
    sides = [json.loads((folder / f"{side}.json").read_text()) for side in ("ours", "recbole")]
    print(f"{'network':14} {'ours':>8} {'RecBole':>8} {'difference':>10} {'2 SE':>7}  agree")
    for kind, loss in RUNS:
        one, other = ([side[f"{kind} {loss} {seed}"] for seed in SEEDS] for side in sides)
        error = ((variance(one) + variance(other)) / len(SEEDS)) ** 0.5
        difference = mean(one) - mean(other)
        agree = abs(difference) <= max(2 * error, 0.05 * mean(other))
        print(
            f"{kind + ' ' + loss:14} {mean(one):8.4f} {mean(other):8.4f} {difference:+10.4f} "
            f"{2 * error:7.4f}  {'yes' if agree else 'no'}"
        )


if __name__ == "__main__":
    command, place = sys.argv[1], Path(sys.argv[2])
    if command == "log":
        write_log(place)
    elif command == "compare":
        compare(place)
    else:
        measure(command, place)
