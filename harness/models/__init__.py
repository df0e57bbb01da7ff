"""What a model is to the harness: messages in, a reply or a typed error out."""

from harness.models.contract import (
    Batches,
    BatchStatus,
    CallError,
    Finish,
    Message,
    Model,
    ModelSettings,
    Reply,
    Request,
    Sampling,
    TokenLogprob,
    Topic,
    Usage,
)
from harness.models.identity import RECORDED, Identity

__all__ = [
    "RECORDED",
    "BatchStatus",
    "Batches",
    "CallError",
    "Finish",
    "Identity",
    "Message",
    "Model",
    "ModelSettings",
    "Reply",
    "Request",
    "Sampling",
    "TokenLogprob",
    "Topic",
    "Usage",
]
