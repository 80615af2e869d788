"""The eager backend: runs the operator graph's generated Python. Key type: EagerBackend."""

from __future__ import annotations

import torch.fx

from magpy_core._compat.torch.fx_targets import printable_targets
from magpy_core.backends.base import CompiledGraph
from magpy_core.backends.fakes import FakeInputs
from magpy_core.backends.tuning import DEFAULT, Tuning
from magpy_core.findings import Unsupported
from magpy_core.opgraph.segments import with_checkpoints


class EagerBackend:
    """Runs the graph operator by operator on the real tensors; nothing is specialized, so there are no guards."""

    name = "eager"

    def compile(
        self,
        gm: torch.fx.GraphModule,
        inputs: FakeInputs,
        *,
        same_random: bool = False,
        tuning: Tuning = DEFAULT,
        checked: bool = False,
    ) -> CompiledGraph:
        try:
            graph = torch.fx.Graph()  # a copy, since the capture's own graph may change later
            graph.output(graph.graph_copy(gm.graph, {}))
            graph.lint()
            gm = with_checkpoints(torch.fx.GraphModule(gm, graph))
            printable_targets(gm)
        except Exception as error:
            raise Unsupported("MP902", f"The operator graph is not valid: {error}") from error
        # The bound method of the class that fx generated: Module.__call__ and its hooks would only add time.
        return CompiledGraph(gm.forward, generated_code=gm.code)
