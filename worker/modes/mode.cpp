// SPDX-License-Identifier: Apache-2.0
#include "worker/modes/mode.hpp"

#include "worker/modes/table.hpp"

#include <algorithm>
#include <array>

namespace plateau {

namespace {

// arena: graphs where there are graphs, else a plan.
std::unique_ptr<prepared_mode> prepare_arena(mode_input const& in) {
  return in.dev.torch_device().is_cpu() ? prepare_arena_planned(in) : prepare_arena_graph(in);
}

constexpr std::array table{
    mode{"eager", prepare_eager},
    mode{"compiled", prepare_compiled},
    mode{"compiled_aten", prepare_compiled_aten},
    mode{"arena", prepare_arena},
    mode{"arena_graph", prepare_arena_graph},
    mode{"arena_planned", prepare_arena_planned},
};

} // namespace

mode const& mode_named(std::string_view name) {
  auto const found = std::ranges::find(table, name, &mode::name);
  if (found == table.end()) throw unsupported("mode " + std::string(name) + " is not in this build");
  return *found;
}

} // namespace plateau
