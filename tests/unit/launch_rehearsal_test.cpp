// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/rehearsal.hpp"

#include "schemas/error.hpp"

#include <gmock/gmock.h>

namespace plateau {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(the_pretend_gpu, is_put_before_what_the_environment_loads_already) {
  auto const env =
      with_pretend_gpu({{"LD_LIBRARY_PATH", "/a"}, {"LD_PRELOAD", "/b.so"}}, {parse_gpu("a100"), "/pretend"}, 2);
  EXPECT_EQ(env.at("LD_LIBRARY_PATH"), "/pretend:/a");
  EXPECT_EQ(env.at("LD_PRELOAD"), "/pretend/libpretend_cuda.so:/b.so");
  EXPECT_EQ(env.at("PRETEND_DEVICES"), "2");
  EXPECT_EQ(env.at("PRETEND_MAJOR"), "8");
  EXPECT_EQ(env.at("PRETEND_SMS"), "108");
}

TEST(the_pretend_gpu, hides_the_choice_among_the_machine_s_own) {
  auto const env = with_pretend_gpu({{"CUDA_VISIBLE_DEVICES", ""}}, {parse_gpu("sm=8.6,memory=1GiB"), "/pretend"}, 1);
  EXPECT_FALSE(env.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(env.at("PRETEND_MIB"), "1024");
  EXPECT_FALSE(env.contains("PRETEND_SMS"));
}

TEST(a_job_to_rehearse, is_for_cuda_and_has_each_case_once) {
  auto j = parse_job(R"({"repeats": 3, "soak": {"windows": 7}})", "job.json");
  auto const rehearsed = job_to_rehearse(j);
  EXPECT_EQ(rehearsed.device, "cuda");
  EXPECT_EQ(rehearsed.repeats, 1);
  EXPECT_EQ(rehearsed.soak.windows, 7);
  j.device = "cpu";
  EXPECT_THAT([&] { job_to_rehearse(j); },
              ThrowsMessage<input_error>(AllOf(HasSubstr("for the CPU"), HasSubstr("--device cuda"))));
}

TEST(a_pretended_gpu, is_told_by_what_its_worker_says_of_it) {
  std::vector<rank_info> ranks(2);
  EXPECT_EQ(pretended_gpu(ranks), std::nullopt) << "no worker came up";
  device_info d;
  d.kind = "cuda";
  d.name = "NVIDIA H200";
  d.compute_capability = "9.0";
  d.memory_bytes = parse_gpu("h200").memory_bytes;
  d.multiprocessors = 132;
  ranks[1].device = d;
  EXPECT_EQ(pretended_gpu(ranks), std::nullopt) << "a real one";
  ranks[1].device->pretended = true;
  EXPECT_EQ(pretended_gpu(ranks), parse_gpu("h200").text());
  ranks[1].device->multiprocessors.reset();
  EXPECT_EQ(pretended_gpu(ranks), "NVIDIA H200 (sm_90, 139.8 GiB)") << "nobody said how many it has";
}

} // namespace
} // namespace plateau
