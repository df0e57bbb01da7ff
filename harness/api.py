"""The Python interface: the same runs as the command's, with typed results."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec

from harness.cli.kept_runs import open_run, with_resumed_run
from harness.cli.run_options import settings_from
from harness.pipeline.run import arun
from harness.reporting.display import make_display
from harness.reporting.result import ComparisonResult, Result, compared, stored_result

__all__ = ["ComparisonResult", "Result", "aevaluate", "compare", "evaluate", "load"]

P = ParamSpec("P")


async def aevaluate(
    tasks: str | Sequence[str],
    *,
    model: str,
    model_args: Mapping[str, Any] | str = "",
    judge: str | None = None,
    role: Mapping[str, str] | None = None,
    data: str | Path | Mapping[str, str | Path] | None = None,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    offline: bool = False,
    download: bool = False,
    limit: int | None = None,
    set: Mapping[str, Any] | None = None,
    gen_kwargs: Mapping[str, Any] | str = "",
    seed: int = 0,
    num_repeats: int = 1,
    structured: bool = False,
    include_path: str | Path | Sequence[str | Path] = (),
    prompts: str | Path | None = None,
    name: str | None = None,
    tag: Mapping[str, Any] | None = None,
    allow_self_judging: bool = False,
    output_path: str | Path = "runs",
    resume: str | Path | None = None,
    fresh: bool = False,
    retry_failures: bool = False,
    concurrency: int | None = None,
    one_engine_at_a_time: bool = False,
    executor: str = "local",
    ray_address: str | None = None,
    workers: int | None = None,
    engines: int | None = None,
    attempts: int | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - the command's, of one attempt
    total_timeout: float | None = None,
    start_timeout: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    prices: str | Path | Mapping[str, Any] | None = None,
    max_failures: float | str | Mapping[str, float] = "",
    store: str | Path | None = None,
    no_store: bool = False,
    quiet: bool = False,
) -> Result:
    """Run tasks like `evaluate`, where an event loop runs: `result = await aevaluate(…)`."""
    options = dict(locals())
    options["output_path"] = Path(output_path)
    settings = settings_from(with_resumed_run(options))
    result = await arun(settings, display=make_display(quiet=quiet))
    if result.status == "failed":
        raise result.errors[0]
    return Result.of(result)


def _without_await(run: Callable[P, Coroutine[Any, Any, Result]]) -> Callable[P, Result]:
    @functools.wraps(run, assigned=())
    def evaluate(*args: P.args, **options: P.kwargs) -> Result:
        """Run tasks like `harness --model … --tasks …`; the result of the run.

            result = evaluate("interests", model="openai:base_url=…,model=…", limit=10)

        The arguments are the options of the command, by their names; `set`, `role`, `tag`,
        `columns` and `values` are mappings. Progress is printed to standard error, unless `quiet`.

        A failed run raises its error. A run that had too many failures returns its result with
        that status. A run that Ctrl-C or the stop button of a notebook ended raises
        KeyboardInterrupt; the same call continues it.
        """
        if _a_loop_runs():
            return _in_a_thread(run(*args, **options))
        return asyncio.run(run(*args, **options))

    return evaluate


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


evaluate = _without_await(aevaluate)


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
