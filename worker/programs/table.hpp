// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/programs/program.hpp"

#include <string_view>

/// The programs there are, one file each; program.cpp holds their table.
namespace plateau {

/// Linear, GELU, Linear, residual add, LayerNorm, mean over the sequence, scores between the sequences of the
/// batch.
program make_encoder_block(job const& j);
extern std::string_view const encoder_block_twin; ///< encoder_block.py

/// No operators at all: what a request costs that does nothing.
program make_noop(job const& j);

} // namespace plateau
