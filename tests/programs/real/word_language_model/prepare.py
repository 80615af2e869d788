"""Writes the texts to learn from: sentences of a small grammar, in which the verb agrees with its subject."""

import os
import random

rng = random.Random(3)
nouns = ["dog", "child", "farmer", "bird", "judge", "sailor"]
verbs = ["run", "sing", "wait", "laugh", "read"]
places = ["at home", "by the sea", "in town", "under the bridge"]


def sentence():
    noun, verb = rng.choice(nouns), rng.choice(verbs)
    subject, verb = rng.choice([(f"the {noun}", f"{verb}s"), (f"two {noun}s", verb)])
    return " ".join([subject, verb, rng.choice(places), "."])


folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
os.makedirs(folder, exist_ok=True)
for name, count in (("train", 250), ("valid", 60), ("test", 60)):
    with open(os.path.join(folder, f"{name}.txt"), "w", encoding="utf8") as f:
        f.writelines(f" {sentence()} \n" for _ in range(count))
