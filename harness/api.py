"""The Python interface: the same runs as the command's, with typed results."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Unpack

from harness.base.errors import UsageError
from harness.cli.run_options import RunOptions, options_of_python, settings_from
from harness.cli.runs import open_run, with_resumed_run
from harness.pipeline.run import arun
from harness.pipeline.settings import RunSettings
from harness.reporting.display import make_display
from harness.reporting.result import ComparisonResult, Result, compared, stored_result

__all__ = ["ComparisonResult", "Result", "aevaluate", "compare", "evaluate", "load"]


async def aevaluate(
    run: RunSettings | str | Sequence[str] | None = None, /, **options: Unpack[RunOptions]
) -> Result:
    """Run tasks like `evaluate`, where an event loop runs: `result = await aevaluate(…)`."""
    given: dict[str, Any] = {**options}
    if isinstance(run, RunSettings):
        if other := given.keys() - {"quiet"}:
            raise UsageError("settings are given whole", found=f"{', '.join(sorted(other))} too")
        settings = run
    else:
        named = options_of_python(given if run is None else {"tasks": run, **given})
        settings = settings_from(with_resumed_run(named))
    result = await arun(settings, display=make_display(quiet=given.get("quiet", False)))
    if result.status == "failed":
        raise result.errors[0]
    return Result.of(result)


def evaluate(
    run: RunSettings | str | Sequence[str] | None = None, /, **options: Unpack[RunOptions]
) -> Result:
    """Run tasks like `harness --model … --tasks …`; the result of the run.

        result = evaluate("interests", model="openai:base_url=…,model=…", limit=10)

    The arguments are the options of the command, by their names, or settings as a whole; `set`,
    `role`, `tag`, `columns` and `values` are mappings. Progress is printed to standard error,
    unless `quiet`.

    A failed run raises its error. A run that had too many failures returns its result with that
    status. A run that Ctrl-C or the stop button of a notebook ended raises KeyboardInterrupt; the
    same call continues it.
    """
    running = aevaluate(run, **options)
    return _in_a_thread(running) if _a_loop_runs() else asyncio.run(running)


def _a_loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_a_thread(run: Coroutine[Any, Any, Result]) -> Result:
    """The result of a run in a loop of its own, while the caller's loop stands still."""
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    stopped = threading.Event()

    async def in_its_loop() -> Result:
        task = asyncio.current_task()
        assert task is not None
        begun.append((asyncio.get_running_loop(), task))
        if stopped.is_set():
            task.cancel()
        return await run

    with ThreadPoolExecutor(1) as pool, _ctrl_c_raises():
        try:
            return pool.submit(asyncio.run, in_its_loop()).result()
        except KeyboardInterrupt:
            stopped.set()
            for loop, task in begun:
                with contextlib.suppress(RuntimeError):  # it has ended by now
                    loop.call_soon_threadsafe(task.cancel)
            raise


@contextlib.contextmanager
def _ctrl_c_raises() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt at once: `asyncio.run` waits for its loop, which stands."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def load(run: str | Path, *, output_path: str | Path = "runs") -> Result:
    """The result of a stored run, finished or not: of its folder, or of its name in `output_path`.

    A name is the folder's name, a unique beginning of it, the run's label, or `latest`.
    """
    return stored_result(*open_run(str(run), among=Path(output_path)))


def compare(
    runs: Iterable[Result | str | Path],
    *,
    against: Result | str | Path | None = None,
    metric: str | Sequence[str] = (),
    by: str | None = None,
    gate: str | Sequence[str] = (),
    force: bool = False,
    output_path: str | Path = "runs",
) -> ComparisonResult:
    """The comparison of runs, task by task: results, or what `load` takes.

        compare([evaluate("interests", model=one), "step-1000"])

    It has the main metrics, or those in `metric`. Of two runs the second is subtracted from the
    first, of several the one of `against` from each. `by` names a slice of the data, to compare
    within its parts too. `gates` of the result has whether each `gate` holds, such as
    `"interests.support>-0.02"`. With `force`, runs are compared even if their settings differ.
    """

    def result_of(run: Result | str | Path) -> Result:
        return run if isinstance(run, Result) else load(run, output_path=output_path)

    results = [result_of(run) for run in runs]
    base = None if against is None else result_of(against)
    if base is not None:
        results = [base, *results]
    return compared(
        results,
        metrics=[metric] if isinstance(metric, str) else metric,
        against=None if base is None else base.manifest.run_id,
        by=by,
        gates=[gate] if isinstance(gate, str) else gate,
        force=force,
    )
