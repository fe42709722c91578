// SPDX-License-Identifier: Apache-2.0
#include "worker/output_check.hpp"

#include "schemas/crc32c.hpp"
#include "worker/memory/cpu_allocator.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace plateau {

namespace {

std::string digest_of(at::Tensor const& contiguous_on_cpu) {
  auto const* const bytes = static_cast<std::uint8_t const*>(contiguous_on_cpu.const_data_ptr());
  char text[9];
  std::snprintf(text, sizeof text, "%08x", unsigned{crc32c({bytes, contiguous_on_cpu.nbytes()})});
  return text;
}

// 0 / 0 is no error: a reference of zeros that is met.
double ratio(double error, double size) { return error == 0 ? 0 : error / size; }

} // namespace

output_copy copy_output(at::Tensor const& output) {
  unmeasured const own;
  auto const here = output.to(at::kCPU).contiguous();
  auto const wide = here.to(at::kDouble);
  auto const* const first = wide.const_data_ptr<double>();
  return {{first, first + wide.numel()}, digest_of(here)};
}

output_error distance(std::vector<double> const& output, std::vector<double> const& reference) {
  constexpr auto infinite = std::numeric_limits<double>::infinity();
  if (output.size() != reference.size()) return {infinite, infinite};
  double error_squared = 0, size_squared = 0, most_error = 0, most = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (!std::isfinite(output[i])) return {infinite, infinite};
    auto const error = std::abs(output[i] - reference[i]);
    error_squared += error * error;
    size_squared += reference[i] * reference[i];
    most_error = std::max(most_error, error);
    most = std::max(most, std::abs(reference[i]));
  }
  return {ratio(std::sqrt(error_squared), std::sqrt(size_squared)), ratio(most_error, most)};
}

double output_tolerance(job const& run) {
  auto const dtype = dtype_name(run);
  if (dtype == "bfloat16") return 1.6e-2;
  bool const tf32 = run.allow_tf32 && run.device == "cuda";
  return dtype == "float16" || tf32 ? 2e-3 : 1e-5;
}

} // namespace plateau
