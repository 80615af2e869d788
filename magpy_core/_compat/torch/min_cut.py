"""The partition Inductor uses by default, with draws where they were recorded; imported with Inductor. Key type: MinCut."""

from __future__ import annotations

from typing import Any

import torch
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from magpy_core._compat.torch.partition import settled


class MinCut(CustomPartitionerFn):
    """For ``torch._inductor.config.custom_partitioner_fn``."""

    def __init__(self, place_draws: bool) -> None:
        self.place_draws = place_draws

    def __call__(self, gm: torch.fx.GraphModule, joint_inputs: Any, **options: Any) -> Any:
        return settled(min_cut_rematerialization_partition, gm, joint_inputs, place_draws=self.place_draws, **options)

    def uuid(self) -> str:
        """Part of the key of Inductor's cache."""
        return f"magpy: draws where they were recorded: {self.place_draws}, written inputs saved as copies"
