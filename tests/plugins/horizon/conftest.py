"""Small training data, and one thread, since the tests share their cores."""

import asyncio
import json
import sys
from itertools import chain, repeat

import numpy as np
import pytest
from harness_horizon.recommenders.training_data import Histories, TrainingData

from harness.contracts.model import Message, ModelSettings, Request, Sampling
from harness.registry import load_plugins
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task


def answers_of(make, texts, **args):
    """The answers of a model that is opened with these arguments to what is asked at once."""

    async def ask():
        model = make(ModelSettings(args=args))
        await model.open()
        asked = ((Message("user", text),) for text in texts)
        requests = [Request(messages=one, sampling=Sampling(), seed=0) for one in asked]
        replies = await asyncio.gather(*map(model.ask, requests))
        await model.close()
        return [json.loads(reply.text) for reply in replies]

    return asyncio.run(ask())


def finished(result, label="baseline"):
    """The tasks of a run, as analyses have them."""
    folder, benchmark = RunFolder(result.folder), load_plugins().benchmark
    return [
        finished_task(folder, result.manifest, one.task, benchmark(one.benchmark), label=label)
        for one in result.summaries
    ]


@pytest.fixture
def embedding(monkeypatch):
    """Puts embedders, one after the other and the last one for ever, in the place of named ones."""

    def use(*embedders):
        named, each = [], chain(embedders, repeat(embedders[-1]))

        def named_embedder(spec, **given):
            named.append((spec, given))
            return next(each)

        monkeypatch.setattr("harness.pipeline.embedders.named_embedder", named_embedder)
        return named

    return use


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    """Also where a test is the first to import torch, which takes seconds."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def histories(rows):
    """Histories from lists of items."""
    return Histories(np.cumsum([0, *map(len, rows)]), np.concatenate(rows, dtype=np.int64))


def made_data(train, validation=None, split="s"):
    """Training data from lists of items; the last item of a validation history is asked."""
    others = histories(train if validation is None else validation)
    return TrainingData(histories(train), others, others.sizes - 1, split)
