// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/job.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// Where a program's value comes from.
enum class value_role { input, weight, temporary, output };

/// The normal distribution that a weight's or input's elements are drawn from.
struct distribution {
  double mean = 0, deviation = 1;
};

/// A tensor of a program. All of a program's values have the job's dtype.
struct value {
  std::string name; ///< a weight's is its name in the Python twin's state_dict
  std::vector<std::int64_t> shape;
  value_role role = value_role::temporary;
  distribution elements = {};               ///< of a weight or the input
  std::optional<std::size_t> alias_of = {}; ///< the value whose memory it takes over, when its op works in place
};

/// One operator, in two forms that compute the same bits in float32. Arguments come in the order of `in`.
struct op {
  std::string name;
  std::vector<std::size_t> in; ///< indices of values
  std::size_t out = 0;

  /// As a user's code would call it: allocates its result. Works in any dtype, so that it also gives the
  /// reference.
  std::function<at::Tensor(std::span<at::Tensor const>)> eager;
  /// A call that writes into `out` (of the value's shape, contiguous) and allocates nothing. Made once for
  /// each stream thread with the tensors that it will always use, so that views are built ahead of time.
  std::function<std::function<void()>(std::vector<at::Tensor> in, at::Tensor out)> bind;
};

/// A model, written down once: a list of operators over values. Modes are ways to execute the list.
struct program {
  std::string name;
  std::vector<value> values; ///< exactly one input, and exactly one output unless there are no ops
  std::vector<op> ops;       ///< in the order of execution; the last one makes the output

  std::size_t input() const;
  std::optional<std::size_t> output() const;
};

/// The type of a job's tensors; float32 when the job does not say.
at::ScalarType dtype_of(job const& j);

/// A program's tensors as a worker holds them: weights by value index, undefined elsewhere. The same for the
/// same seed, on every rank and device, and drawn in float32 whatever the dtype. Only the weights themselves
/// are allocated where they are counted.
std::vector<at::Tensor> make_weights(program const& p, job const& j, at::Device where);
/// The input of one stream thread: the same for the same seed, rank and thread; different for each.
at::Tensor make_input(program const& p, job const& j, at::Device where, std::int64_t rank, std::int64_t thread);
/// The program's output for `input`, in float64 on the CPU; undefined without one. Leaves no trace in the
/// counters.
at::Tensor reference_output(program const& p, std::vector<at::Tensor> const& weights, at::Tensor const& input);

/// A program that a job's `workload` can name.
struct program_entry {
  std::string_view name;
  program (*make)(job const&);
  std::string_view python_twin; ///< source of a Python module that makes the same model; empty: none
};

std::span<program_entry const> programs();
program_entry const& program_named(std::string_view name); ///< throws input_error

} // namespace plateau
