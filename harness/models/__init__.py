"""What a model is to the harness: messages in, a reply or a typed error out."""

from harness.models.contract import (
    CallError,
    Demanding,
    Examinable,
    Finish,
    Logging,
    Message,
    Model,
    ModelSettings,
    Reply,
    Reporting,
    Request,
    Sampling,
    StartsServer,
    TakesBatches,
    TokenLogprob,
    Topic,
    Usage,
)
from harness.models.identity import RECORDED, Identity

__all__ = [
    "RECORDED",
    "CallError",
    "Demanding",
    "Examinable",
    "Finish",
    "Identity",
    "Logging",
    "Message",
    "Model",
    "ModelSettings",
    "Reply",
    "Reporting",
    "Request",
    "Sampling",
    "StartsServer",
    "TakesBatches",
    "TokenLogprob",
    "Topic",
    "Usage",
]
