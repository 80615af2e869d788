"""Generated recordings: short rhythms picked up by three microphones, each further away and so noisier."""

import math

import torch

RHYTHMS = ["steady", "rising", "falling", "beating", "stepped"]
MICROPHONES = {"near": 0.05, "middle": 0.45, "far": 1.1}
LENGTH = 128


def rhythm(label: int, generator: torch.Generator) -> torch.Tensor:
    """One clean waveform of LENGTH samples."""
    t = torch.arange(LENGTH) / LENGTH
    frequency, phase = (torch.rand(2, generator=generator) * torch.tensor([2.0, 2 * math.pi])).tolist()
    frequency += 3
    if RHYTHMS[label] == "steady":
        return torch.sin(2 * math.pi * frequency * t + phase)
    if RHYTHMS[label] == "rising":
        return torch.sin(2 * math.pi * frequency * (0.5 * t + 0.7 * t**2) + phase)
    if RHYTHMS[label] == "falling":
        return torch.sin(2 * math.pi * frequency * (1.9 * t - 0.7 * t**2) + phase)
    if RHYTHMS[label] == "beating":
        return torch.sin(2 * math.pi * frequency * t + phase) * torch.cos(3 * math.pi * t).abs() * 1.4
    return torch.sin(2 * math.pi * frequency * t + phase).sign() * 0.8


def recordings(microphone: str, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """``count`` recordings of one microphone, at any gain, as (count, 1, LENGTH), and their labels."""
    labels = torch.randint(len(RHYTHMS), (count,), generator=generator)
    clean = torch.stack([rhythm(label, generator) for label in labels.tolist()])
    noisy = clean + MICROPHONES[microphone] * torch.randn(clean.shape, generator=generator)
    gain = 0.5 + 4 * torch.rand((), generator=generator)
    return gain * noisy[:, None], labels
