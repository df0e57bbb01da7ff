"""A tiny Llama-shaped checkpoint made on the spot: `python tiny_model.py FOLDER [--seed N]`.

Run by the interpreter that has vLLM, which brings transformers and torch along. The weights are
random and the tokenizer is trained on a few sentences, so the model knows nothing; both are the
same for the same seed. It leans a little towards closing what it opened, as a constrained answer
would otherwise often run into its limit. With `--says WORD` it is a checkpoint that answers that
word, or that sentence, to everything: a judge whose verdicts can be read.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

END = "<|end|>"
CHAT_TEMPLATE = (
    "{% for turn in messages %}<|{{ turn['role'] }}|>{{ turn['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = [END, "<|pad|>", "<|system|>", "<|user|>", "<|assistant|>"]
CORPUS = [
    "A person liked a film about the sea and skipped a recipe for bread.",
    "Name the interests of this person and cite the items that prove each of them.",
    "Which of the numbered items support the interest? Answer with their numbers, or NONE.",
    '[{"interest": "gardening", "items": [1, 2, 3]}, {"interest": "trains", "items": [4]}]',
    "The user engaged with videos on photography, hiking, basketball and astronomy.",
]
WORDS = 400
"""Tokens in the vocabulary: every byte, and what the corpus is worth."""

LEAN = 4.0
"""How much the tokens that end an answer are preferred."""

CLOSING = '"]},'
CONTROL = [chr(0x100 + byte) for byte in range(0x20)]
"""Bytes that JSON forbids, as a byte-level vocabulary spells them. Strings with a bound on their
length may hold them as far as xgrammar is concerned, and no trained model would write them."""

CERTAIN = 1000.0


def tokenizer(*, chat_template: bool) -> Any:
    """A byte-level tokenizer, so that no text is unknown to it."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        CORPUS, vocab_size=WORDS, min_frequency=1, special_tokens=SPECIAL, show_progress=False
    )
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer,
        bos_token=END,
        eos_token=END,
        pad_token="<|pad|>",
        additional_special_tokens=SPECIAL[2:],
    )
    if chat_template:
        wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def weights(words: Any, *, seed: int, context: int, says: str | None) -> Any:
    """A model of two layers with random weights, and its leaning."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(words),
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=context,
            initializer_range=0.2,
            bos_token_id=words.eos_token_id,
            eos_token_id=words.eos_token_id,
            pad_token_id=words.pad_token_id,
            tie_word_embeddings=False,
        )
    )
    with torch.no_grad():
        if says is None:
            closing = [words.convert_tokens_to_ids(mark) for mark in CLOSING]
            keep_apart(model, 0)
            model.lm_head.weight[[*closing, words.eos_token_id], 0] = LEAN
            control = words.convert_tokens_to_ids(CONTROL)
            model.lm_head.weight[control, 0] = -CERTAIN
        else:
            say(model, word=words.convert_tokens_to_ids(says), end=words.eos_token_id)
    return model


def keep_apart(model: Any, place: int) -> None:
    """Make one number of every state 1, out of the layers' reach, and without weight so far.

    What its column of the output matrix then holds is added to each token's score everywhere.
    """
    model.model.embed_tokens.weight[:, place] = 1.0
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight[place] = 0.0
        layer.mlp.down_proj.weight[place] = 0.0
    model.lm_head.weight[:, place] = 0.0


def say(model: Any, *, word: int, end: int) -> None:
    """Have the word follow everything but itself, and the end follow the word."""
    for place in (0, 1):
        keep_apart(model, place)
    model.model.embed_tokens.weight[:, 1] = 0.0
    model.model.embed_tokens.weight[word, 1] = 1.0
    model.lm_head.weight[word, 0] = CERTAIN
    model.lm_head.weight[end, 1] = 2 * CERTAIN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--no-chat-template", dest="chat_template", action="store_false")
    parser.add_argument("--says", metavar="WORD", help="what answers everything")
    args = parser.parse_args()
    words = tokenizer(chat_template=args.chat_template)
    if args.says is not None and args.says not in words.get_vocab():
        words.add_tokens([args.says])
    words.save_pretrained(args.folder)
    model = weights(words, seed=args.seed, context=args.context, says=args.says)
    model.save_pretrained(args.folder)


if __name__ == "__main__":
    main()
