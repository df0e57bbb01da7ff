"""The networks by kind, built from their settings or from stored weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from harness.base.errors import UsageError
from harness_horizon.recommenders.bert4rec import BERT4Rec
from harness_horizon.recommenders.causal_nets import GRU4Rec, SASRec
from harness_horizon.recommenders.core_net import CORE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness_horizon.recommenders.layers import Recommender
    from harness_horizon.recommenders.presets import Hyper, Kind

KINDS: dict[Kind, type[Recommender]] = {
    "sasrec": SASRec,
    "bert4rec": BERT4Rec,
    "gru4rec": GRU4Rec,
    "core": CORE,
}


def device_of(name: str = "auto") -> torch.device:
    """The device of that name; with `auto` a GPU when there is one, and the CPU otherwise.

    UsageError if it is a GPU that PyTorch does not see.
    """
    usable = torch.cuda.is_available()
    if name == "auto":
        name = "cuda" if usable else "cpu"
    elif name == "cuda" and not usable:
        raise UsageError(
            "there is no GPU that PyTorch can use",
            where="device cuda",
            found=f"torch {torch.__version__}",
            expected="auto or cpu, or a GPU with a build of PyTorch for it",
        )
    return torch.device(name)


def new_network(kind: Kind, known: int, hyper: Hyper) -> Recommender:
    """A network with the first weights of its seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(hyper.seed)
        return KINDS[kind](known, hyper)


def weights_of(network: Recommender) -> dict[str, NDArray[np.float32]]:
    """The network's weights by name."""
    return {name: value.cpu().numpy() for name, value in network.state_dict().items()}


def network_from(
    kind: Kind, hyper: Hyper, weights: Mapping[str, NDArray[np.float32]], known: int
) -> Recommender:
    """The network with these weights, ready to rank."""
    with torch.device("meta"):
        network = KINDS[kind](known, hyper)
    given = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    network.load_state_dict(given, assign=True)
    return network.eval()
