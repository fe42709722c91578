// SPDX-License-Identifier: Apache-2.0
#include "schemas/injection.hpp"

#include "schemas/codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

injection read(std::string const& text) {
  std::vector<problem> problems;
  auto i = read_injection(text, "/inject/0", problems);
  for (auto const& p : problems) ADD_FAILURE() << p.where << "  " << p.what;
  return i;
}

std::vector<std::string> planted(std::vector<std::string> texts, case_id const& id, std::int64_t rank) {
  job j;
  j.inject = std::move(texts);
  std::vector<std::string> out;
  for (auto const& i : injections_for(j, id, rank)) out.push_back(i.text);
  return out;
}

TEST(injection, is_everywhere_at_once_and_of_the_usual_size_when_it_says_nothing) {
  for (auto const& entry : fault_entries()) {
    auto const i = read(std::string(name_of(entry.kind)));
    EXPECT_EQ(i.kind, entry.kind);
    EXPECT_FALSE(i.rank || i.target || i.ms);
    EXPECT_EQ(i.after, 0);
    EXPECT_EQ(i.bytes, 4096);
    EXPECT_EQ(i.every, 50);
  }
  EXPECT_EQ(fault_entries().size(), names(fault{}).size());
}

TEST(injection, takes_each_of_its_keys) {
  auto const leak = read("leak:rank=1,case=eager.c2.r3,after=7,bytes=512,every=3");
  EXPECT_EQ(leak.rank, 1);
  EXPECT_EQ(leak.target, "eager.c2.r3");
  EXPECT_EQ(leak.after, 7);
  EXPECT_EQ(leak.bytes, 512);
  EXPECT_EQ(leak.every, 3);
  EXPECT_EQ(read("slow:ms=2.5").ms, 2.5);
  EXPECT_EQ(read("slow:ms=4").ms, 4);
}

TEST(injection, tells_all_that_is_wrong_with_a_text) {
  std::vector<problem> problems;
  read_injection("leak:rank=-1,evry=5,bytes=99999999999999999999", "--inject/2", problems);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].where, "--inject/2/rank");
  EXPECT_EQ(problems[1].where, "--inject/2/evry");
  EXPECT_THAT(problems[1].what, HasSubstr("did you mean every? (rank, case, after, bytes, every)"));
  EXPECT_THAT(problems[2].what, HasSubstr("needs an integer >= 1 and <= 1099511627776"));
}

TEST(injection, is_planted_where_it_says_and_nowhere_else) {
  std::vector<std::string> const texts{"hang", "slow:rank=1", "leak:case=eager.c2", "crash:rank=1,case=eager.c4"};
  EXPECT_THAT(planted(texts, {"eager", 2}, 0), ElementsAre("hang", "leak:case=eager.c2"));
  EXPECT_THAT(planted(texts, {"eager", 4}, 1), ElementsAre("hang", "slow:rank=1", "crash:rank=1,case=eager.c4"));
  EXPECT_THAT(planted(texts, {"eager", 4, 1}, 0), ElementsAre("hang"));
  EXPECT_TRUE(planted({}, {"eager", 2}, 0).empty());
}

TEST(injection, that_was_never_checked_is_refused_and_not_passed_over) {
  EXPECT_THROW(planted({"leek"}, {"eager", 2}, 0), job_error);
}

} // namespace
} // namespace plateau
