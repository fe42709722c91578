// SPDX-License-Identifier: Apache-2.0
#include "worker/fabric/fabric_device.hpp"

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace plateau {

namespace {

void check(cudaError_t result, char const* call) {
  if (result != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}

struct free_buffer {
  void operator()(float* p) const { cudaFree(p); }
};
using buffer = std::unique_ptr<float, free_buffer>;

buffer make_buffer(std::size_t floats) {
  void* p = nullptr;
  check(cudaMalloc(&p, floats * sizeof(float)), "cudaMalloc");
  return buffer(static_cast<float*>(p));
}

struct destroy_stream {
  using pointer = cudaStream_t;
  void operator()(cudaStream_t s) const { cudaStreamDestroy(s); }
};
using own_stream = std::unique_ptr<cudaStream_t, destroy_stream>;

own_stream make_stream() {
  cudaStream_t s = nullptr;
  check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return own_stream(s);
}

// Copies and fills go through the check's own stream, and are waited for: no collective is under way then.
class cuda_fabric_device final : public fabric_device {
public:
  explicit cuda_fabric_device(std::size_t floats)
      : floats_(floats), contribution_(make_buffer(floats)), sum_(make_buffer(floats)), stream_(make_stream()) {}

  float* contribution() override { return contribution_.get(); }
  float* sum() override { return sum_.get(); }

  void set_contribution(std::span<float const> values) override {
    copy(contribution_.get(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice);
  }
  void clear_sum() override {
    constexpr int all_ones = 0xff; // in each byte: a NaN
    check(cudaMemsetAsync(sum_.get(), all_ones, floats_ * sizeof(float), stream_.get()), "cudaMemsetAsync");
    check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }
  void get_sum(std::span<float> values) override {
    copy(values.data(), sum_.get(), values.size_bytes(), cudaMemcpyDeviceToHost);
  }

  CUstream_st* stream() override { return stream_.get(); }
  bool idle() override {
    auto const state = cudaStreamQuery(stream_.get());
    if (state != cudaErrorNotReady) check(state, "cudaStreamQuery");
    return state == cudaSuccess;
  }

  std::int64_t used_bytes() override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<std::int64_t>(total - free);
  }

private:
  std::size_t floats_;
  buffer contribution_, sum_;
  own_stream stream_;

  void copy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind direction) {
    check(cudaMemcpyAsync(to, from, bytes, direction, stream_.get()), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }
};

} // namespace

std::unique_ptr<fabric_device> open_cuda_fabric_device(std::size_t floats) {
  return std::make_unique<cuda_fabric_device>(floats);
}

} // namespace plateau
