// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/modes/mode.hpp"

#include <memory>

/// The modes there are, one file each; mode.cpp holds their table.
namespace plateau {

/// The ATen forms, as a user's code would call them: every result is allocated, and freed after its last use.
std::unique_ptr<prepared_mode> prepare_eager(mode_input const& in);

/// An AOTInductor package of the program's Python twin, with eager's own weights. `compiled` passes the job's
/// GEMM backends to the compiler; `compiled_aten` always ATEN.
std::unique_ptr<prepared_mode> prepare_compiled(mode_input const& in);
std::unique_ptr<prepared_mode> prepare_compiled_aten(mode_input const& in);

/// CUDA: eager's pass on each stream thread's stream captured as a CUDA graph in a pool of its own, and replayed.
std::unique_ptr<prepared_mode> prepare_arena_graph(mode_input const& in);

/// One block per stream thread, offsets planned from lifetimes, out= forms.
std::unique_ptr<prepared_mode> prepare_arena_planned(mode_input const& in);

} // namespace plateau
