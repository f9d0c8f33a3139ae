#!/usr/bin/env python3
"""Tokens of captions by Hugging Face's tokenizers, made while the loop works on earlier batches.

    PYTHONPATH=build/python python python/examples/caption_tokens.py SHARDS [tokenizer.json]

SHARDS are tar files with a .jpg and a .txt for each sample ('x-{000..127}.tar'). Without a
tokenizer.json a small one is trained on the first captions. on_batch runs in a thread of the
Loader; encode_batch() holds no lock of Python's, and has threads of its own.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import stoker


def tokenizer_of(source: stoker.Source, path: str | None) -> Tokenizer:
    """Pads the rows of a batch to the longest one, rounded up: few widths for compiled nets."""
    if path is not None:
        tokenizer = Tokenizer.from_file(path)
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=1000,
            special_tokens=["<pad>", "<unk>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        texts = (sample.targets["txt"][0] for sample in itertools.islice(source, 1000))
        tokenizer.train_from_iterator(texts, trainer)
    tokenizer.enable_truncation(77)
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id("<pad>") or 0, pad_to_multiple_of=8)
    return tokenizer


def main(shards: str, path: str | None = None) -> None:
    source = stoker.open(shards, label_from="none", targets_from=["txt:text"])
    tokenizer = tokenizer_of(source, path)

    def with_tokens(batch: stoker.Batch) -> tuple[stoker.Batch, np.ndarray]:
        encodings = tokenizer.encode_batch(batch.texts)
        return batch, np.array([each.ids for each in encodings])

    loader = stoker.Loader(
        source,
        batch_size=8,
        seed=0,
        epochs=1,
        augment=stoker.augment.random_resized_crop(64) | stoker.augment.drop_text(0.1),
        on_batch=with_tokens,
    )
    for batch, tokens in loader:
        print(f"step {batch.step}: images {batch.images.shape}, tokens {tokens.shape}")


if __name__ == "__main__":
    main(*sys.argv[1:])
