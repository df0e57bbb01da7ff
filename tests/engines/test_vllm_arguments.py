"""Arguments held against the real engine's own parser; nothing is started."""

from __future__ import annotations

import pytest
from harness_models.vllm import OLD_SERVER, check_with_parser, make
from harness_models.vllm_args import DEFAULTS, KNOWN, PRESETS

from harness.base.errors import UsageError
from harness.contracts.model import ModelSettings

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(1800)]

OF_A_PARALLEL_ENGINE = {
    "tensor_parallel_size": "4",
    "pipeline_parallel_size": "2",
    "data_parallel_size": "2",
    "data_parallel_backend": "ray",
    "dtype": "bfloat16",
    "max_num_seqs": "256",
    "gpu_memory_utilization": "0.9",
    "max_model_len": "32768",
    "seed": "3",
    "quantization": "fp8",
    "kv_cache_dtype": "fp8",
    "load_format": "dummy",
    "reasoning_parser": "qwen3",
    "trust_remote_code": "true",
    "enforce_eager": "true",
    "enable_chunked_prefill": "true",
}


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_and_all_that_is_taken_unasked_are_known_to_the_parser(vllm_python, preset):
    given = {**DEFAULTS, **OF_A_PARALLEL_ENGINE, **PRESETS[preset]}
    assert given.keys() == set(KNOWN) | DEFAULTS.keys()
    check_with_parser(vllm_python, OLD_SERVER, given)


def test_an_unknown_argument_or_value_is_told_in_vllms_own_words(vllm_python, checkpoints):
    args = {"pretrained": str(checkpoints.candidate), "python": vllm_python}
    with pytest.raises(UsageError) as caught:
        make(ModelSettings(args={**args, "max_modellen": "9"}))
    assert caught.value.problem == "vLLM has no argument 'max_modellen'"
    assert caught.value.hint == "did you mean 'max_model_len'?"
    with pytest.raises(UsageError) as caught:
        make(ModelSettings(args={**args, "block_size": "many"}))
    assert caught.value.found == "block_size=many"
    assert "invalid" in caught.value.expected
