// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/gpu_model.hpp"

#include "schemas/error.hpp"

#include <gmock/gmock.h>

namespace plateau {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

TEST(gpu_model, is_found_by_name) {
  auto const gpu = parse_gpu("h200");
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.major * 10 + gpu.minor, 90);
  EXPECT_GT(gpu.memory_bytes, std::int64_t{139} << 30);
  EXPECT_LT(gpu.memory_bytes, std::int64_t{141} << 30) << "what CUDA reports is less than what the name says";
  EXPECT_THAT(gpu.text(), StartsWith("NVIDIA H200 (sm_90, 139.8 GiB, 132 SMs)"));
}

TEST(gpu_model, is_described_when_it_has_no_name_here) {
  auto const gpu = parse_gpu("sm=8.6,memory=24.5GiB,sms=84");
  EXPECT_EQ(gpu.major, 8);
  EXPECT_EQ(gpu.minor, 6);
  EXPECT_EQ(gpu.memory_bytes, 25088 * (std::int64_t{1} << 20));
  EXPECT_EQ(gpu.multiprocessors, 84);
  EXPECT_EQ(parse_gpu("memory=512MiB,sm=9.0").memory_bytes, std::int64_t{512} << 20);
}

TEST(gpu_model, survives_the_way_to_a_rank) {
  for (auto const& known : known_gpus()) EXPECT_EQ(known.model.spec(), known.alias);
  auto const gpu = parse_gpu("sm=8.6,memory=24.5GiB,sms=84");
  EXPECT_EQ(parse_gpu(gpu.spec()).spec(), gpu.spec());
}

TEST(gpu_model, that_is_not_understood_is_refused_with_what_would_be) {
  for (auto const* bad :
       {"", "h2000", "sm=9.0", "memory=141GiB", "sm=9,memory=141GiB", "sm=9.0,memory=141GB", "sm=9.0,memory=0GiB",
        "sm=9.0,memory=nanGiB", "sm=9.0,memory=141GiB,sms=0", "sm=9.0 memory=1GiB", "sm=9.0,sm=8.0,memory=1GiB",
        "sm=9.0,memory=1GiB,memory=1GiB", "sm=9.0,memory=1GiB,sms=1,sms=2"})
    try {
      parse_gpu(bad);
      FAIL() << bad;
    } catch (input_error const& e) {
      EXPECT_THAT(e.what(), HasSubstr("h200")) << bad;
      EXPECT_THAT(e.what(), HasSubstr("sm=9.0,memory=141GiB")) << bad;
    }
}

TEST(gpu_model, of_a_misspelt_name_is_not_guessed_but_suggested) {
  EXPECT_THAT([] { parse_gpu("h20"); }, ThrowsMessage<input_error>(HasSubstr("did you mean h200?")));
  EXPECT_EQ(parse_gpu("A100").name, parse_gpu("a100").name) << "that is no misspelling";
}

TEST(gpu_model, without_its_multiprocessors_says_nothing_of_them) {
  auto const gpu = parse_gpu("sm=9.0,memory=8192MiB");
  EXPECT_EQ(gpu.text(), "a GPU (sm_90, 8 GiB)");
  EXPECT_EQ(gpu.spec(), "sm=9.0,memory=8192MiB");
}

} // namespace
} // namespace plateau
