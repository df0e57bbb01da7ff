"""Which models a session may ask, and whose keys are looked for before anything is paid."""

from types import SimpleNamespace

from harness.contracts.model import Model
from harness.pipeline.preparation import Prepared
from harness.pipeline.run import _asked


class Plain(Model):
    async def ask(self, request):
        raise AssertionError("nothing is asked here")


class InBatches(Plain):
    takes_batches = True


def test_models_whose_questions_are_written_down_are_not_asked():
    plain, batched = Plain(), InBatches()
    binding = SimpleNamespace(models=(plain, batched))
    task = SimpleNamespace(bindings={"candidate": binding, "judge": binding})
    prepared = Prepared(settings=None, tasks=(task, task), groups=())
    assert _asked(prepared, to_file=False) == [plain, batched]
    assert _asked(prepared, to_file=True) == [plain]
