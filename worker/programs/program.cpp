// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/program.hpp"

#include "worker/memory/cpu_allocator.hpp"
#include "worker/programs/table.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace plateau {

namespace {

enum class drawn : std::uint64_t { weight, input };

// SplitMix64 over the parts: nearby seeds, ranks and threads give unrelated streams of numbers.
std::uint64_t mixed(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t state = 0;
  for (auto const part : parts) {
    state += part + 0x9e3779b97f4a7c15;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
    state ^= state >> 31;
  }
  return state;
}

// Draws from a generator of its own: Torch's global one is the user's.
at::Tensor draw(value const& v, job const& j, at::Device where, std::uint64_t seed) {
  auto out = at::empty(v.shape, at::TensorOptions(dtype_of(j)).device(where));
  unmeasured const no_trace;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  auto numbers = at::empty(v.shape, at::TensorOptions(at::kFloat));
  out.copy_(numbers.normal_(v.elements.mean, v.elements.deviation, generator));
  return out;
}

std::optional<std::size_t> with_role(program const& p, value_role role) {
  auto const found = std::ranges::find(p.values, role, &value::role);
  if (found == p.values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - p.values.begin());
}

} // namespace

std::size_t program::input() const { return with_role(*this, value_role::input).value(); }

std::optional<std::size_t> program::output() const { return with_role(*this, value_role::output); }

at::ScalarType dtype_of(job const& j) {
  auto const name = dtype_name(j);
  if (name == "float32") return at::kFloat;
  if (name == "float16") return at::kHalf;
  if (name == "bfloat16") return at::kBFloat16;
  throw input_error("dtype is " + std::string(name) + "; it may be float32, float16 or bfloat16");
}

std::vector<at::Tensor> make_weights(program const& p, job const& j, at::Device where) {
  std::vector<at::Tensor> weights(p.values.size());
  auto const seed = static_cast<std::uint64_t>(j.random_seed);
  for (std::size_t i = 0; i < p.values.size(); ++i)
    if (p.values[i].role == value_role::weight)
      weights[i] = draw(p.values[i], j, where, mixed({seed, static_cast<std::uint64_t>(drawn::weight), i}));
  return weights;
}

at::Tensor make_input(program const& p, job const& j, at::Device where, std::int64_t rank, std::int64_t thread) {
  return draw(p.values[p.input()], j, where,
              mixed({static_cast<std::uint64_t>(j.random_seed), static_cast<std::uint64_t>(drawn::input),
                     static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(thread)}));
}

at::Tensor reference_output(program const& p, std::vector<at::Tensor> const& weights, at::Tensor const& input) {
  unmeasured const no_trace;
  // To the CPU first: a conversion on the way would be done, and allocated, on the device.
  auto const exact = [](at::Tensor const& t) { return t.defined() ? t.to(at::kCPU).to(at::kDouble) : t; };
  std::vector<at::Tensor> values;
  std::ranges::transform(weights, std::back_inserter(values), exact);
  values[p.input()] = exact(input);
  for (auto const& op : p.ops) {
    std::vector<at::Tensor> in;
    for (auto const i : op.in) in.push_back(values[i]);
    values[op.out] = op.eager(in);
  }
  return p.ops.empty() ? at::Tensor() : values[p.ops.back().out];
}

std::span<program_entry const> programs() {
  static std::array<program_entry, 2> const table{{
      {"encoder_block", make_encoder_block, encoder_block_twin},
      {"noop", make_noop, {}},
  }};
  return table;
}

program_entry const& program_named(std::string_view name) {
  auto const found = std::ranges::find(programs(), name, &program_entry::name);
  if (found != programs().end()) return *found;
  std::string known;
  for (auto const& entry : programs()) known += (known.empty() ? "" : ", ") + std::string(entry.name);
  throw input_error("workload is \"" + std::string(name) + "\"; it may be one of: " + known);
}

} // namespace plateau
