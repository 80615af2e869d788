"""Writes the data set: a text of made-up sentences as files of 16-bit token numbers, one number for each character."""

import os
import pickle
import random

import numpy as np

rng = random.Random(20)
subjects = ["the cat", "a crow", "my uncle", "the queen", "one ship", "no one"]
verbs = ["sees", "follows", "paints", "forgets", "answers"]
objects = ["the moon", "an old map", "three bells", "the river", "a letter"]
text = "\n".join(f"{rng.choice(subjects)} {rng.choice(verbs)} {rng.choice(objects)}." for _ in range(600))

chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
itos = dict(enumerate(chars))
print(f"{len(text):,} characters, {len(chars)} different ones")

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "sentences")
os.makedirs(folder, exist_ok=True)
split = len(text) * 9 // 10
for name, part in ("train", text[:split]), ("val", text[split:]):
    ids = np.array([stoi[ch] for ch in part], dtype=np.uint16)
    ids.tofile(os.path.join(folder, f"{name}.bin"))
with open(os.path.join(folder, "meta.pkl"), "wb") as f:
    pickle.dump({"vocab_size": len(chars), "stoi": stoi, "itos": itos}, f)
