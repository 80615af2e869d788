"""Indented with tabs: a tab is one column."""

import torch
from torch import nn


class Net(nn.Module):
	def __init__(self):
		super().__init__()
		self.layer = nn.Linear(4, 4)

	def forward(self, x):
		y = self.layer(x)
		if	y.max() > 9:	# expect: MP101 `y.max() > 9`
			y = y / 9
		return y


torch.manual_seed(0)
Net()(torch.randn(2, 4))
