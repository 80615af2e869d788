"""Write corpus.txt: about 100 KB of little fables, generated from the grammar below with a fixed seed.

The text has no author but this file, so it is free for anyone to use. The same seed gives the same bytes:

    python make_corpus.py
"""

import random
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus.txt")
SEED = 1
SIZE = 100_000

ANIMALS = [
    ("fox", "den"), ("crow", "nest"), ("tortoise", "pond"), ("hare", "burrow"), ("wolf", "cave"), ("mouse", "barn"),
    ("owl", "hollow tree"), ("heron", "reeds"), ("badger", "hill"), ("otter", "river bank"), ("goose", "yard"),
    ("cricket", "wall"), ("bear", "forest"), ("goat", "meadow"),
]  # fmt: skip
TRAITS = ["proud", "hungry", "clever", "patient", "greedy", "gentle", "lazy", "careful", "young", "old", "merry", "quiet"]
THINGS = [
    "a piece of cheese", "a silver bell", "a basket of apples", "a jar of honey", "a warm cloak", "a ripe fig",
    "a loaf of bread", "a bright feather", "a bag of corn", "a lantern", "a broken mirror", "a wooden cup",
]  # fmt: skip
PLACES = [
    "by the mill", "under the bridge", "at the edge of the wood", "in the market", "on the frozen lake", "near the old well",
    "beside the stone wall", "at the foot of the mountain",
]  # fmt: skip
TIMES = ["One morning", "Late in the autumn", "In a year without rain", "On the first day of spring", "Long ago",
         "When the snow had gone", "At the end of a long summer", "One night"]  # fmt: skip
WANTS = ["Give me a share", "Tell me where you found it", "Let me carry it for you", "Sing me a song first",
         "Race me to the hill for it", "Trade it for my good advice", "Show me how it is done"]  # fmt: skip
ANSWERS = ["What is found in haste is lost in haste", "I have nothing for those who only ask", "Ask me again tomorrow",
           "You may have half of it, and gladly", "First tell me what you will do in return",
           "I would rather keep a friend than a treasure", "The road is long and I am in no hurry"]  # fmt: skip
ENDS = ["So they shared it and both were content", "But the wind took it, and neither had anything",
        "The {a} went home with an empty hand", "In the end the {b} kept it and was alone",
        "And from that day they were neighbours", "The {b} only laughed and walked away",
        "They argued until dark, and a thief took it"]  # fmt: skip
MORALS = [
    "A kind word opens more doors than a key.", "He who hurries eats his bread raw.", "Better half a loaf than a quarrel.",
    "Praise is a net with wide holes.", "Those who will not share must guard.", "Small feet also reach the river.",
    "Look twice at a gift that runs to meet you.", "What you lend to winter, spring pays back.",
]  # fmt: skip


def a_or_an(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def fable(rng: random.Random) -> str:
    (a, _), (b, home) = rng.sample(ANIMALS, 2)
    trait_a, trait_b = rng.sample(TRAITS, 2)
    thing = rng.choice(THINGS)
    it = thing.split(" ", 1)[1]
    count = rng.randint(2, 9)
    lines = [
        f"{a_or_an(trait_a)} {a} and {a_or_an(trait_b)} {b}".upper(),
        "",
        f"{rng.choice(TIMES)} {a_or_an(a)} met {a_or_an(b)} {rng.choice(PLACES)}. "
        f"The {b} had found {thing} and was taking it to the {home}.",
    ]
    for _ in range(rng.randint(1, 3)):
        lines.append(f'"{rng.choice(WANTS)}," said the {a}, who was {trait_a}.')
        lines.append(f'"{rng.choice(ANSWERS)}," said the {b}, who was {trait_b}.')
    if rng.random() < 0.5:
        lines.append(f"For {count} days the {a} thought of nothing but the {it}, and on day {count + 1} came back.")
    lines += [rng.choice(ENDS).format(a=a, b=b) + ".", "", f"{rng.choice(MORALS)}", "", ""]
    return "\n".join(lines)


def corpus() -> str:
    rng = random.Random(SEED)
    parts: list[str] = []
    size = 0
    while size < SIZE:
        parts.append(fable(rng))
        size += len(parts[-1]) + 1
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    CORPUS.write_text(corpus(), encoding="utf-8", newline="\n")
