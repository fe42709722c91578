// SPDX-License-Identifier: Apache-2.0
#include "tests/torch/allocator_seed_run.hpp"

#include <array>
#include <initializer_list>
#include <set>
#include <utility>

namespace plateau::trace {
namespace {

constexpr std::int64_t hidden = 1024, batch = 16, rows = batch * 128, half = 2;
constexpr std::int64_t wide = rows * 4 * hidden * half, narrow = rows * hidden * half;
constexpr std::int64_t statistic = rows * 4; // LayerNorm's mean, or its 1/sigma, in float32
constexpr std::int64_t pooled = batch * hidden * half, product = batch * batch * half;
constexpr std::int64_t cublas_workspace = 8'519'680, cublas_lt_workspace = 1 << 20;
constexpr std::array<std::int64_t, 6> model_bytes{
    4 * hidden * hidden * half, 4 * hidden* half, 4 * hidden* hidden* half, hidden* half, hidden* half, hidden* half};
constexpr int warmup = 30, timed = 120;

/// Writes down the steps. Blocks are numbers.
class recorder {
public:
  seed_trace result;

  std::int64_t allocate(std::int64_t bytes, std::int64_t stream) {
    result.steps.push_back({action::allocate, ++last_, bytes, stream});
    return last_;
  }
  void free(std::initializer_list<std::int64_t> blocks) {
    for (auto const block : blocks) result.steps.push_back({.what = action::free, .block = block});
  }
  void reset_peak() { result.steps.push_back({.what = action::reset_peak}); }

  /// A GEMM's output. The workspace of each (cuBLAS handle, stream) is taken once and kept.
  std::int64_t gemm(std::int64_t bytes, int handle, std::int64_t stream) {
    auto const out = allocate(bytes, stream);
    take_workspace(handle, stream);
    return out;
  }
  std::int64_t fused_gemm(std::int64_t bytes, int handle, std::int64_t stream) {
    auto const out = allocate(bytes, stream);
    auto const scratch = allocate(cublas_lt_workspace, stream);
    take_workspace(handle, stream);
    free({scratch});
    return out;
  }

private:
  void take_workspace(int handle, std::int64_t stream) {
    if (workspaces_.emplace(handle, stream).second) allocate(cublas_workspace, stream);
  }

  std::int64_t last_ = 0;
  std::set<std::pair<int, std::int64_t>> workspaces_;
};

std::int64_t eager_request(recorder& r, int handle, std::int64_t stream) {
  auto const up = r.fused_gemm(wide, handle, stream);
  auto const gelu = r.allocate(wide, stream);
  r.free({up});
  auto const down = r.fused_gemm(narrow, handle, stream);
  r.free({gelu});
  auto const sum = r.allocate(narrow, stream);
  auto const normed = r.allocate(narrow, stream);
  auto const mean = r.allocate(statistic, stream), rstd = r.allocate(statistic, stream);
  r.free({mean, rstd, sum, down});
  auto const p = r.allocate(pooled, stream);
  auto const out = r.allocate(product, stream);
  r.free({normed, p});
  return out;
}

// The first request of all tunes its kernel on a copy of the buffer that it changes in place.
std::int64_t compiled_request(recorder& r, int handle, std::int64_t stream, bool first) {
  auto const up = r.gemm(wide, handle, stream);
  if (first) r.free({r.allocate(wide, stream)});
  auto const down = r.gemm(narrow, handle, stream);
  r.free({up});
  auto const mean = r.allocate(statistic, stream), rstd = r.allocate(statistic, stream);
  auto const p = r.allocate(pooled, stream);
  r.free({mean, rstd, down});
  auto const out = r.allocate(product, stream);
  r.free({p});
  return out;
}

/// The model and each worker's input; a case's are freed once the next case's are there.
struct tenant {
  std::vector<std::int64_t> model, inputs;
};

tenant settle(recorder& r, std::int64_t workers) {
  tenant t;
  for (auto const bytes : model_bytes) t.model.push_back(r.allocate(bytes, 0));
  for (std::int64_t i = 0; i < workers; ++i) t.inputs.push_back(r.allocate(narrow, 0));
  return t;
}

void leave(recorder& r, tenant const& t) {
  for (auto const block : t.inputs) r.free({block});
  for (auto const block : t.model) r.free({block});
}

} // namespace

seed_trace seed_run() {
  recorder r;
  tenant before;
  std::int64_t next_stream = 1;
  for (std::string const mode : {"eager", "compiled_aten"}) {
    for (std::int64_t const workers : {4, 8}) {
      tenant now = settle(r, workers);
      leave(r, std::exchange(before, std::move(now)));
      bool const tunes = mode == "compiled_aten" && workers == 4;
      auto const request = [&](int handle, std::int64_t stream, bool first) {
        return mode == "eager" ? eager_request(r, handle, stream) : compiled_request(r, handle, stream, first);
      };

      // Warm-up is on the main thread, so with its handle; its last output is held until the next one is
      // there.
      std::int64_t const first_stream = std::exchange(next_stream, next_stream + workers);
      for (std::int64_t w = 0; w < workers; ++w) {
        std::int64_t held = request(0, first_stream + w, tunes && w == 0);
        for (int i = 1; i < warmup; ++i) r.free({std::exchange(held, request(0, first_stream + w, false))});
        r.free({held});
      }
      r.reset_peak();
      seed_case done{mode, workers, r.result.steps.size(), 0};
      for (std::int64_t w = 0; w < workers; ++w) // each timed thread is new, and has a handle of its own
        for (int i = 0; i < timed; ++i) r.free({request(static_cast<int>(w) + 1, first_stream + w, false)});
      done.steps_after_timing = r.result.steps.size();
      r.result.cases.push_back(done);
    }
  }
  return r.result;
}

} // namespace plateau::trace
