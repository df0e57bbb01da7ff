"""What the log of `transformers serve` says: how far a start is, why it failed, what helps."""

from __future__ import annotations

import re

from harness_models.server.served import trouble

STAGES = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"\[transformers\] Loading \S+@", "loading the weights"),
        (r"Loading weights: 100%", "weights loaded"),
        (r"Application startup complete", "server up"),
    )
)


TROUBLES = (
    trouble(
        r"Missing dependencies for serving|No module named '(fastapi|uvicorn|openai|pydantic)'",
        "transformers is installed without what serving needs",
        'pip install "transformers[serving]" into the environment of python=…',
    ),
    trouble(
        r"No module named 'torch'|PyTorch (was not found|library but it was not found)",
        "transformers is installed without torch",
        "pip install torch into the environment of python=…",
    ),
    trouble(
        r"tokenizer\.chat_template is not set|does not have a chat template",
        "the checkpoint has no chat template, so it cannot be asked",
        "chat_template=FILE.jinja, the one that it was trained with",
    ),
    trouble(
        r"Unsupported dtype: '(?P<dtype>[^']*)'",
        "there is no dtype {dtype}",
        "dtype=auto, float32, float16 or bfloat16",
    ),
    trouble(
        r"Invalid value for '?(?P<reason>[^\n]+)",
        "transformers serve refuses an argument: {reason}",
        "see `transformers serve --help`",
    ),
    trouble(
        r"out of memory\. Tried to allocate (?P<wanted>[\d.]+ \w+)",
        "the GPU is out of memory: {wanted} more are wanted",
        "smaller weights, a smaller max_model_len, or device=cpu",
    ),
    trouble(
        r"`?trust_remote_code=True`?",
        "the checkpoint brings code of its own",
        "trust_remote_code=true, if you have read that code",
    ),
    trouble(
        r"GatedRepoError|gated repo|401 Client Error",
        "the hub does not give these weights to everybody",
        "accept their licence on the hub, and set HF_TOKEN",
    ),
    trouble(
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled"
        r"|couldn't connect to '?https://huggingface\.co",
        "the weights are not in the cache, and the hub cannot be reached",
        "pretrained=FOLDER, or a start with a network",
    ),
    trouble(r"No space left on device", "a disk is full", "free some: weights need it"),
)
