"""A model that was asked before: it answers with the replies of a stored run, or of a file."""

from __future__ import annotations

from pathlib import Path

from harness.errors import DataError, ModelError, UsageError, did_you_mean
from harness.models import CallError, Model, ModelSettings, Reply, Request
from harness_models.arguments import count_of
from harness_models.recordings import FileRecording, Recording, RunRecording

USUAL_ROLE = "candidate"
ARGUMENTS = ("run", "file", "model", "role", "concurrency")


class ReplayModel(Model):
    """Answers what the recording holds; what it does not hold is a failure of its own."""

    def __init__(self, recording: Recording, *, concurrency: int | None) -> None:
        self.concurrency = concurrency or self.concurrency
        self.identity = recording.identity()
        self._recording = recording
        self._asked = self._missing = 0

    async def open(self) -> None:
        """Find out where in the recording each answer is."""
        try:
            self._recording.open()
        except DataError as error:
            raise ModelError(
                f"the recording cannot be used: {error.problem}",
                where=error.where or self._recording.label,
                found=error.found,
                expected=error.expected,
                hint=error.hint,
            ) from error
        self._asked = self._missing = 0

    async def close(self) -> None:
        """Close the recording, and tell how many questions it did not hold."""
        self._recording.close()
        if self._missing:
            self.show(
                f"{self._recording.label}: {self._missing:,} of {self._asked:,} questions were not "
                "recorded"
            )

    async def ask(self, request: Request) -> Reply:
        """The recorded reply; a recorded failure comes back as it was."""
        self._asked += 1
        found = self._recording.find(request)
        if found is None:
            self._missing += 1
            raise CallError("not_recorded", f"{self._recording.label} holds no such question")
        if found.reply is None:
            raise CallError(found.cause, found.detail)
        return found.reply


def make(settings: ModelSettings) -> Model:
    """The recording that the arguments name; UsageError where they name none."""
    args = settings.args
    for name in args:
        if name not in ARGUMENTS:
            raise UsageError(
                f"a replay model has no argument {name!r}",
                where="--model_args",
                expected=", ".join(ARGUMENTS),
                hint=did_you_mean(name, ARGUMENTS),
            )
    if ("run" in args) == ("file" in args):
        raise UsageError(
            "a replay model needs what it answers from",
            where="--model_args",
            found="both run= and file=" if "run" in args else "neither run= nor file=",
            expected="run=RUN, a run's folder, or file=FILE, recorded replies",
        )
    lost = "model" if "run" in args else "role"
    if lost in args:
        raise UsageError(
            f"{lost}= means nothing here",
            where="--model_args",
            found=f"{lost}={args[lost]}",
            expected="model= beside file=, role= beside run=",
        )
    return ReplayModel(
        RunRecording(Path(args["run"]), role=args.get("role", USUAL_ROLE))
        if "run" in args
        else FileRecording(Path(args["file"]), model=args.get("model")),
        concurrency=count_of("replay", "concurrency", args["concurrency"])
        if "concurrency" in args
        else settings.concurrency,
    )
