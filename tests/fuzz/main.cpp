// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls in each of the targets.
#include "tests/fuzz/fuzzing.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  plateau::fuzzing::fuzz_one({data, size});
  return 0;
}
