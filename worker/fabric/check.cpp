// SPDX-License-Identifier: Apache-2.0
#include "worker/fabric/check.hpp"

#include "worker/fabric/communicator.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace plateau {

namespace {

using clock = std::chrono::steady_clock;

constexpr int untimed = 2, timed = 20; // all-reduces of each size

std::int64_t ns_since(clock::time_point began) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - began).count();
}

// Rank r contributes 1 + (r + i) % period at place i: small whole numbers, so that float32 holds every sum over up to
// 2^24 / period ranks exactly, in whatever order NCCL adds; different on neighbouring ranks and places; and of a period
// that no power of two is a multiple of, so that a piece in another's place is noticed.
constexpr std::int64_t period = 61;

std::vector<float> contribution_of(std::int64_t rank, std::size_t floats) {
  std::vector<float> values(floats);
  for (std::size_t i = 0; i < floats; ++i)
    values[i] = static_cast<float>(1 + (rank + static_cast<std::int64_t>(i)) % period);
  return values;
}

// The sum over all ranks at each place of a period.
std::array<float, period> sums_over(std::int64_t ranks) {
  std::array<float, period> sums{};
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    for (std::int64_t i = 0; i < period; ++i)
      sums[static_cast<std::size_t>(i)] += static_cast<float>(1 + (rank + i) % period);
  return sums;
}

// What is wrong with the sum, if anything.
std::optional<fabric_failure> compare(fabric_device& gpu, std::size_t floats, std::int64_t ranks) {
  std::vector<float> got(floats);
  gpu.get_sum(got);
  auto const expected = sums_over(ranks);
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = floats; i-- > 0;)
    if (got[i] != expected[i % period]) ++wrong, first = i;
  if (wrong == 0) return std::nullopt;
  char text[160];
  std::snprintf(text, sizeof text, "an all-reduce of %zu floats gave %g instead of %g at place %zu (%zu are wrong)",
                floats, double{got[first]}, double{expected[first % period]}, first, wrong);
  return fabric_failure{fabric_step::comparing, text};
}

all_reduce_timing time_all_reduce(nccl_communicator& all, fabric_device& gpu, std::int64_t bytes) {
  auto const floats = static_cast<std::size_t>(bytes) / sizeof(float);
  all.all_reduce(gpu, floats, untimed);
  auto const began = clock::now();
  all.all_reduce(gpu, floats, timed);
  return {bytes, timed, ns_since(began)};
}

void check(fabric_result& result, nccl_library const& nccl, fabric_device& gpu, fabric_place const& place,
           std::span<std::int64_t const> sizes, fabric_deadline const& deadline) {
  auto const largest = static_cast<std::size_t>(sizes.back()) / sizeof(float);
  gpu.set_contribution(contribution_of(place.rank, largest));
  result.used_before = gpu.used_bytes();
  auto const began = clock::now();
  nccl_communicator all(nccl, unique_id_of(place.unique_id), static_cast<int>(place.rank),
                        static_cast<int>(place.ranks), deadline);
  result.initialised_ns = ns_since(began);
  result.used_initialised = gpu.used_bytes();
  all.all_reduce(gpu, static_cast<std::size_t>(sizes.front()) / sizeof(float), 1);
  result.used_first = gpu.used_bytes();
  for (auto const bytes : sizes) {
    gpu.clear_sum();
    result.all_reduces.push_back(time_all_reduce(all, gpu, bytes));
    auto wrong = compare(gpu, static_cast<std::size_t>(bytes) / sizeof(float), place.ranks);
    if (!result.failure) result.failure = std::move(wrong); // and on, or the other ranks would wait for this one
  }
  result.used_last = gpu.used_bytes();
  all.close();
}

} // namespace

fabric_result check_fabric(nccl_library const& nccl, fabric_device& gpu, fabric_place const& place,
                           std::span<std::int64_t const> sizes, std::chrono::duration<double> allowed) {
  fabric_result result;
  try {
    check(result, nccl, gpu, place, sizes, fabric_deadline{allowed});
  } catch (fabric_error const& e) {
    result.failure = fabric_failure{e.step, e.what()};
  } catch (std::exception const& e) { // of the device
    result.failure =
        fabric_failure{result.initialised_ns ? fabric_step::reducing : fabric_step::initialising, e.what()};
  }
  return result;
}

} // namespace plateau
