"""lm-evaluation-harness over the same messages: a local task, its chat template applied."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

TASK = """
task: bench_chat
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: generate_until
doc_to_text: "{{{{text}}}}"
doc_to_target: "ok"
generation_kwargs:
  until: []
  max_gen_toks: 16
  do_sample: false
  temperature: 0.0
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
"""


def evaluate(url: str, data: Path, concurrency: int, folder: Path) -> None:
    """Runs the task and checks that every message was answered."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    os.environ["HF_HOME"] = str(folder / "hub")
    os.environ["HF_HUB_OFFLINE"] = "1"
    tasks = folder / "tasks"
    tasks.mkdir(parents=True)
    (tasks / "bench_chat.yaml").write_text(TASK.format(data=data), encoding="utf-8")

    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    result = simple_evaluate(
        model="local-chat-completions",
        model_args={
            "model": "bench",
            "base_url": f"{url}/chat/completions",
            "num_concurrent": concurrency,
            "tokenizer_backend": None,
            "tokenized_requests": False,
        },
        tasks=["bench_chat"],
        task_manager=TaskManager(include_path=str(tasks), include_defaults=False),
        apply_chat_template=True,
    )
    scores = result["results"]["bench_chat"]
    assert scores["exact_match,none"] == 1.0, scores
    (folder / "result.json").write_text(json.dumps(scores), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    evaluate(arguments.url, arguments.data, arguments.concurrency, arguments.folder)
