// SPDX-License-Identifier: Apache-2.0
// The worker's own code of the fabric check, each rank a thread, against a stand-in for NCCL that sums in host memory.
#include "worker/fabric/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <limits>
#include <thread>
#include <vector>

namespace plateau {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::int64_t sizes[] = {1 << 10, 1 << 16, 1 << 18};

std::string header_version() {
  return std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) + "." + std::to_string(NCCL_PATCH);
}

// Something of the stand-in that NCCL does not have.
template <class Function>
Function* of_the_stand_in(char const* name) {
  auto* const library = dlopen(FAKE_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(dlsym(library, name));
}
int asked(char const* name) { return of_the_stand_in<int()>(name)(); }

// A GPU in host memory. Its memory in use rises by one each time it is read.
class host_device final : public fabric_device {
public:
  explicit host_device(std::size_t floats) : contribution_(floats), sum_(floats) {}
  float* contribution() override { return contribution_.data(); }
  float* sum() override { return sum_.data(); }
  void set_contribution(std::span<float const> values) override { std::ranges::copy(values, contribution_.begin()); }
  void clear_sum() override { std::ranges::fill(sum_, std::numeric_limits<float>::quiet_NaN()); }
  void get_sum(std::span<float> values) override { std::copy_n(sum_.begin(), values.size(), values.begin()); }
  CUstream_st* stream() override { return reinterpret_cast<CUstream_st*>(&last_); }
  bool idle() override {
    if (broken) throw std::runtime_error("cudaStreamQuery: an illegal memory access was encountered");
    return of_the_stand_in<int(void*)>("fake_nccl_idle")(last_) != 0;
  }
  std::int64_t used_bytes() override { return ++used_; }

  bool broken = false;

private:
  std::vector<float> contribution_, sum_;
  void* last_ = nullptr; // the communicator that works on this stream
  std::int64_t used_ = 0;
};

struct fabric_check : testing::Test {
  void script(char const* text) { setenv("FAKE_NCCL", text, 1); }
  void TearDown() override {
    for (auto const* name : {"FAKE_NCCL", "FAKE_NCCL_VERSION", "NCCL_SOCKET_IFNAME"}) unsetenv(name);
  }

  nccl_library load() { return load_nccl(FAKE_NCCL_LIBRARY); }

  std::string why_not_loaded() {
    try {
      load();
      return "loaded";
    } catch (fabric_error const& e) {
      EXPECT_EQ(e.step, fabric_step::loading);
      return e.what();
    }
  }

  // What each of the ranks finds.
  std::vector<fabric_result> check(std::int64_t ranks, std::chrono::duration<double> allowed = 20s,
                                   std::int64_t broken_device = -1) {
    auto const nccl = load();
    auto const id = info_of(nccl, true).unique_id;
    std::vector<fabric_result> results(static_cast<std::size_t>(ranks));
    {
      std::vector<std::jthread> threads;
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
          host_device gpu(sizes[2] / sizeof(float));
          gpu.broken = rank == broken_device;
          results[static_cast<std::size_t>(rank)] = check_fabric(nccl, gpu, {rank, ranks, id}, sizes, allowed);
        });
    }
    return results;
  }
};

std::string reason_of(fabric_result const& r) { return r.failure ? r.failure->reason : "none"; }

TEST_F(fabric_check, passes_when_every_rank_gets_the_right_sums) {
  auto const destroyed = asked("fake_nccl_destroyed"), aborted = asked("fake_nccl_aborted");
  for (auto const& r : check(3)) {
    EXPECT_FALSE(r.failure) << reason_of(r);
    EXPECT_GT(r.initialised_ns.value_or(0), 0);
    ASSERT_EQ(r.all_reduces.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(r.all_reduces[i].bytes, sizes[i]);
      EXPECT_GT(r.all_reduces[i].repetitions, 0);
      EXPECT_GT(r.all_reduces[i].elapsed_ns, 0);
    }
  }
  EXPECT_EQ(asked("fake_nccl_blocking"), 0) << "or nothing could end an initialisation that hangs";
  EXPECT_EQ(asked("fake_nccl_destroyed") - destroyed, 3);
  EXPECT_EQ(asked("fake_nccl_aborted") - aborted, 0);
}

TEST_F(fabric_check, takes_the_memory_in_use_before_nccl_with_it_and_after_its_collectives) {
  auto const r = check(2)[1];
  EXPECT_EQ(r.used_before, 1);
  EXPECT_EQ(r.used_initialised, 2);
  EXPECT_EQ(r.used_first, 3);
  EXPECT_EQ(r.used_last, 4);
}

TEST_F(fabric_check, ends_at_its_deadline_and_aborts_when_a_rank_is_never_ready) {
  script("never_ready@1");
  auto const aborted = asked("fake_nccl_aborted");
  auto const began = std::chrono::steady_clock::now();
  for (auto const& r : check(2, 300ms)) {
    ASSERT_TRUE(r.failure);
    EXPECT_EQ(r.failure->step, fabric_step::initialising);
    EXPECT_EQ(r.failure->reason, "ncclCommInitRankConfig was not done 0.3 s after the check began (timeouts_s.fabric)");
    EXPECT_FALSE(r.used_initialised);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_EQ(asked("fake_nccl_aborted") - aborted, 2) << "on all ranks, or those that are left hang";
}

TEST_F(fabric_check, ends_at_its_deadline_when_an_all_reduce_never_does) {
  script("never_sums@0");
  auto const aborted = asked("fake_nccl_aborted");
  for (auto const& r : check(2, 2s)) {
    ASSERT_TRUE(r.failure);
    EXPECT_EQ(r.failure->step, fabric_step::reducing);
    EXPECT_THAT(r.failure->reason, HasSubstr("ncclAllReduce was not done 2 s after"));
    EXPECT_TRUE(r.used_initialised) << "what was found until then is kept";
  }
  EXPECT_EQ(asked("fake_nccl_aborted") - aborted, 2);
}

TEST_F(fabric_check, tells_an_initialisation_that_breaks_in_nccls_words) {
  script("init_breaks@0,never_ready@1");
  EXPECT_THAT(reason_of(check(2, 500ms)[0]),
              AllOf(HasSubstr("ncclCommInitRankConfig: unhandled system error"), HasSubstr("No route to host")));
  script("init_fails");
  EXPECT_THAT(reason_of(check(2, 500ms)[0]), HasSubstr("ncclCommInitRankConfig: invalid usage"));
}

TEST_F(fabric_check, tells_an_all_reduce_that_breaks_long_before_the_deadline) {
  script("breaks");
  auto const began = std::chrono::steady_clock::now();
  for (auto const& r : check(2)) {
    ASSERT_TRUE(r.failure);
    EXPECT_EQ(r.failure->step, fabric_step::reducing);
    EXPECT_THAT(r.failure->reason, HasSubstr("remote process exited or there was a network error"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST_F(fabric_check, finds_a_wrong_sum_on_the_rank_that_has_it_and_keeps_no_other_waiting) {
  script("wrong_value@2");
  auto const results = check(3);
  EXPECT_FALSE(results[0].failure) << reason_of(results[0]);
  EXPECT_FALSE(results[1].failure) << reason_of(results[1]);
  ASSERT_TRUE(results[2].failure);
  EXPECT_EQ(results[2].failure->step, fabric_step::comparing);
  // ranks 0, 1 and 2 contribute 1 + (rank + 128) % 61 at place 128: 7 + 8 + 9
  EXPECT_EQ(results[2].failure->reason, "an all-reduce of 256 floats gave 25 instead of 24 at place 128 (1 are wrong)");
  EXPECT_EQ(results[2].all_reduces.size(), 3u);
}

TEST_F(fabric_check, tells_an_error_of_the_device) {
  auto const r = check(2, 2s, 1)[1];
  ASSERT_TRUE(r.failure);
  EXPECT_EQ(r.failure->step, fabric_step::reducing);
  EXPECT_THAT(r.failure->reason, HasSubstr("illegal memory access"));
}

TEST_F(fabric_check, says_which_nccl_it_found) {
  setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
  auto const info = info_of(load(), false);
  EXPECT_EQ(info.version, header_version());
  EXPECT_THAT(info.library, HasSubstr("libnccl.so.2"));
  EXPECT_EQ(info.unique_id, "");
  EXPECT_EQ(info.settings.at("NCCL_SOCKET_IFNAME"), "eth7");
  EXPECT_FALSE(info.settings.contains("PATH"));
}

TEST_F(fabric_check, takes_the_nccl_of_the_torch_wheel) {
  auto const nccl = load_nccl(REAL_NCCL_LIBRARY);
  EXPECT_EQ(nccl.file, REAL_NCCL_LIBRARY);
  EXPECT_EQ(nccl.version, header_version());
  EXPECT_THAT(nccl.get_error_string(ncclInvalidUsage), HasSubstr("invalid usage"));
}

TEST_F(fabric_check, refuses_an_nccl_that_does_not_fit) {
  setenv("FAKE_NCCL_VERSION", "21210", 1);
  EXPECT_THAT(why_not_loaded(), AllOf(HasSubstr("libnccl.so.2 is NCCL 2.12.10"), HasSubstr("needs 2.14")));
  setenv("FAKE_NCCL_VERSION", "30000", 1);
  EXPECT_THAT(why_not_loaded(), AllOf(HasSubstr("is NCCL 3.0.0"), HasSubstr("2.x")));
  setenv("FAKE_NCCL_VERSION", "29901", 1);
  EXPECT_EQ(why_not_loaded(), "loaded") << "newer ones are meant to work";
}

TEST_F(fabric_check, refuses_a_library_that_is_none) {
  EXPECT_THROW(load_nccl("libnccl-nowhere.so.2"), fabric_error);
  try {
    load_nccl("libc.so.6");
    FAIL();
  } catch (fabric_error const& e) {
    EXPECT_THAT(e.what(), HasSubstr("libc.so.6 has no ncclGetVersion"));
  }
}

TEST_F(fabric_check, tells_that_there_is_no_interface_to_listen_on) {
  script("no_id");
  auto const nccl = load();
  try {
    info_of(nccl, true);
    FAIL();
  } catch (fabric_error const& e) {
    EXPECT_THAT(e.what(), HasSubstr("no interface to listen on"));
  }
  EXPECT_EQ(info_of(nccl, false).unique_id, "") << "only rank 0 needs one";
}

TEST_F(fabric_check, carries_a_unique_id_byte_by_byte) {
  ncclUniqueId id{};
  for (std::size_t i = 0; i < sizeof id.internal; ++i) id.internal[i] = static_cast<char>(2 * i);
  auto const back = unique_id_of(to_text(id));
  EXPECT_EQ(std::memcmp(back.internal, id.internal, sizeof id.internal), 0);
  for (auto const& wrong : {std::string(), std::string(255, 'a'), std::string(256, 'g'), std::string(256, '\0')})
    EXPECT_THROW(unique_id_of(wrong), fabric_error) << wrong;
}

} // namespace
} // namespace plateau
