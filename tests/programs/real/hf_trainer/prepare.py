"""Writes a tiny model's configuration, a tokenizer and labelled sentences, as a folder from a hub would have them."""

import json
import os
import random

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, PreTrainedTokenizerFast

rng = random.Random(8)
good = ["good", "fine", "lovely", "bright"]
bad = ["bad", "dull", "broken", "sad"]
things = ["film", "meal", "song", "day", "house", "idea"]
fillers = ["really", "rather", "just", "so"]


def example():
    label = rng.randint(0, 1)
    words = ["the", rng.choice(things), "was", *rng.choices(fillers, k=rng.randint(0, 5)), rng.choice([bad, good][label])]
    return {"text": " ".join(words), "label": label}


folder = os.path.dirname(os.path.abspath(__file__))
os.makedirs(os.path.join(folder, "data"), exist_ok=True)
for name, count in (("train", 240), ("validation", 60), ("test", 40)):
    with open(os.path.join(folder, "data", f"{name}.jsonl"), "w") as f:
        f.writelines(json.dumps(example()) + "\n" for _ in range(count))

words = ["[PAD]", "[UNK]", "the", "was", *things, *fillers, *good, *bad]
tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = Whitespace()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")
fast.model_input_names = ["input_ids", "attention_mask"]
fast.save_pretrained(os.path.join(folder, "tiny-model"))
BertConfig(
    vocab_size=len(words),
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=32,
    pad_token_id=0,
).save_pretrained(os.path.join(folder, "tiny-model"))
