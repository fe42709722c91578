// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/job.hpp"

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

/// Is a mode's output the program's? None of this leaves a trace in the measured allocator.
namespace plateau {

/// An output as the harness keeps it: its elements as float64, and the CRC-32C of its bytes as eight hex digits.
struct output_copy {
  std::vector<double> elements;
  std::string digest;
};

output_copy copy_output(at::Tensor const& output);

/// How far an output is from its reference. Infinite when an element is not finite or the sizes differ.
struct output_error {
  double relative_l2 = 0;  ///< |d| / |reference|
  double relative_max = 0; ///< max |d| / max |reference|
};

output_error distance(std::vector<double> const& output, std::vector<double> const& reference);

/// The most that both errors may be; `run` has its device and dtype resolved.
double output_tolerance(job const& run);

} // namespace plateau
