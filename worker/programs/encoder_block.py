# SPDX-License-Identifier: Apache-2.0
"""The model of encoder_block.cpp, for the compiler: same operators, same names of weights."""

import torch


class EncoderBlock(torch.nn.Module):
    def __init__(self, hidden: int, inplace_residual: bool):
        super().__init__()
        self.fc1 = torch.nn.Linear(hidden, 4 * hidden)
        self.fc2 = torch.nn.Linear(4 * hidden, hidden)
        self.norm = torch.nn.LayerNorm(hidden)
        self.inplace_residual = inplace_residual

    def forward(self, x):
        y = self.fc2(torch.nn.functional.gelu(self.fc1(x)))
        y = y.add_(x) if self.inplace_residual else y + x
        p = self.norm(y).mean(1)
        return p @ p.t()


def make(spec: dict):
    """The model and an example of its inputs, in float32 on the CPU. The weights' values do not matter."""
    model = EncoderBlock(spec["hidden"], spec["use_inplace_residual"])
    return model, (torch.zeros(spec["batch"], spec["seq_len"], spec["hidden"]),)
