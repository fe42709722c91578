// SPDX-License-Identifier: Apache-2.0
#include "worker/modes/plan.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace plateau {
namespace {

// No plan can do with less: the most bytes alive at once.
std::int64_t least_bytes(std::span<lifetime const> lifetimes) {
  std::int64_t most = 0;
  for (auto const& at : lifetimes) { // the sum can only rise where a lifetime begins
    std::int64_t alive = 0;
    for (auto const& other : lifetimes)
      if (other.first_use <= at.first_use && at.first_use <= other.last_use) alive += other.bytes;
    most = std::max(most, alive);
  }
  return most;
}

std::vector<lifetime> random_lifetimes(std::mt19937& random) {
  std::uniform_int_distribution<std::size_t> count(1, 40), step(0, 20);
  std::uniform_int_distribution<std::int64_t> bytes(0, 10'000);
  std::vector<lifetime> lives(count(random));
  for (auto& life : lives) {
    auto const [first, last] = std::minmax({step(random), step(random)});
    life = {bytes(random), first, last};
  }
  return lives;
}

std::int64_t sum_of(std::vector<lifetime> const& lives) {
  return std::accumulate(lives.begin(), lives.end(), std::int64_t{0},
                         [](auto sum, auto const& life) { return sum + life.bytes; });
}

TEST(a_plan, never_lets_two_living_tensors_share_bytes_and_stays_within_its_bounds) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    auto const lives = random_lifetimes(random);
    auto const plan = plan_offsets(lives);
    ASSERT_FALSE(find_overlap(lives, plan)) << "round " << round;
    ASSERT_GE(plan.bytes, least_bytes(lives));
    ASSERT_LE(plan.bytes, sum_of(lives) + plan_alignment * static_cast<std::int64_t>(lives.size()));
    for (std::size_t i = 0; i < lives.size(); ++i) {
      ASSERT_EQ(plan.offsets[i] % plan_alignment, 0);
      ASSERT_LE(plan.offsets[i] + lives[i].bytes, plan.bytes);
    }
  }
}

TEST(a_plan, reuses_the_memory_of_the_dead) {
  std::vector<lifetime> const chain{{1024, 0, 1}, {1024, 1, 2}, {1024, 2, 3}, {1024, 3, 4}};
  EXPECT_EQ(plan_offsets(chain).bytes, 2048);
  EXPECT_EQ(least_bytes(chain), 2048);
}

TEST(a_plan, takes_the_tightest_gap) {
  // Two large ones that live throughout leave, once the middle ones are dead, a wide and a narrow gap.
  std::vector<lifetime> const lives{{4096, 0, 9}, {1024, 0, 0}, {4000, 0, 9}, {512, 1, 1}};
  auto const plan = plan_offsets(lives);
  EXPECT_EQ(plan.offsets[3], plan.offsets[1]);
  EXPECT_FALSE(find_overlap(lives, plan));
}

TEST(a_plan, is_found_out_when_it_overlaps) {
  std::vector<lifetime> const lives{{100, 0, 2}, {100, 2, 3}, {100, 3, 4}};
  EXPECT_EQ(find_overlap(lives, {{0, 64, 256}, 400}), std::pair(std::size_t{0}, std::size_t{1}));
  EXPECT_FALSE(find_overlap(lives, {{0, 128, 0}, 256})) << "the first is dead when the third begins";
}

TEST(a_plan, of_nothing_is_empty) { EXPECT_EQ(plan_offsets({}).bytes, 0); }

} // namespace
} // namespace plateau
