// SPDX-License-Identifier: Apache-2.0
// A finding has one name, and is seen under it in the table, the summary, JUnit and the gates alike.
#include "orchestrator/analysis/finding.hpp"
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/report/explain.hpp"
#include "orchestrator/report/junit.hpp"
#include "orchestrator/report/table.hpp"
#include "orchestrator/store/assemble.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>
#include <pugixml.hpp>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A run of two ranks with twelve windows, into which each test plants what it is about.
struct findings : testing::Test {
  scratch_folder scratch;
  job run = synthetic_job_with_a_soak();
  run_folder folder = synthetic_folder(scratch.path / "run", run, 2);
  run_info info = synthetic_info(run, 2);

  void plant_leak(case_id const& id, std::int64_t rank) {
    auto result = synthetic_result(info, run, id, rank);
    std::int64_t kept = 0;
    for (auto& point : result.measured->soak) point.allocator.allocated_bytes += 4096 * kept++;
    result.measured->tracked->ops.push_back({"plateau::planted_leak", 1, 4096, 0, 0});
    store(folder, result);
  }
};

json finding_in(json const& summary, std::string const& id, std::string const& check) {
  for (auto const& f : summary["findings"])
    if (f["case_id"] == id && f["check"] == check) return f;
  return nullptr;
}

TEST_F(findings, of_a_leak_name_its_rank_and_its_operator) {
  plant_leak({"arena", 3, 0}, 1);
  auto const end = assemble(folder);
  auto const found = finding_in(end.summary, "arena.c3", "growing");
  ASSERT_FALSE(found.is_null()) << end.summary["findings"].dump(2);
  EXPECT_EQ(found["ranks"], json({1}));
  EXPECT_EQ(found["evidence"]["op"], "plateau::planted_leak");
  EXPECT_EQ(found["evidence"]["series"], "allocated_bytes");
  EXPECT_THAT(found["reason"].get<std::string>(), HasSubstr("rank 1: "));
  EXPECT_THAT(table(end.summary), HasSubstr("arena.c3  growing  rank 1: "));
  EXPECT_THAT(table(end.summary), HasSubstr("GROWING in 1 (arena.c3)"));
  EXPECT_THAT(failed_gates(end.summary, parse_gates("growing")), "growing in arena.c3");
}

TEST_F(findings, make_a_run_bad_only_if_a_gate_says_so) {
  plant_leak({"arena", 3, 0}, 1);
  EXPECT_EQ(assemble(folder).code, exit_code::good) << "run.json has no gates";
  info.fail_on = default_gates();
  std::filesystem::remove(folder.run_json());
  write_run_info(folder, info);
  EXPECT_EQ(assemble(folder).code, exit_code::gate_failed);
  EXPECT_EQ(assemble(folder, run_outcome{0, "", "2026-03-04T10:20:00Z"}).record.outcome->exit_code, 4);
  EXPECT_EQ(assemble(folder, run_outcome{75, "stopped", "2026-03-04T10:20:00Z"}).record.outcome->exit_code, 75);
  EXPECT_EQ(assemble(folder, std::nullopt, "growing").code, exit_code::good) << "blind to it";
}

TEST_F(findings, of_a_healthy_run_are_none_but_the_churn_of_eager) {
  auto const end = assemble(folder);
  for (auto const& f : end.summary["findings"]) EXPECT_EQ(f["check"], "churn") << f.dump();
  EXPECT_THAT(failed_gates(end.summary, parse_gates("growing,inconclusive,unequal")), IsEmpty());
  EXPECT_EQ(failed_gates(end.summary, parse_gates("churn")), "churn in eager.c2, eager.c3");
}

TEST_F(findings, of_junit_fail_at_a_gate_and_are_only_told_elsewhere) {
  plant_leak({"arena", 3, 0}, 1);
  store(folder, failed_result(info, {"eager", 3, 0}, 0, case_status::crashed, "killed by <SIGSEGV> & \"more\""));
  pugi::xml_document document;
  auto const gates = parse_gates("growing");
  ASSERT_TRUE(document.load_string(junit(assemble(folder).summary, gates).c_str()));
  auto const suite = document.child("testsuite");
  auto const test = [&](std::string const& id, std::string const& name) {
    for (auto const& t : suite.children("testcase"))
      if (t.attribute("classname").value() == id && t.attribute("name").value() == name) return t;
    return pugi::xml_node();
  };
  EXPECT_STREQ(test("arena.c3", "growing").child("failure").attribute("type").value(), "growing");
  EXPECT_TRUE(test("arena.c2", "growing"));
  EXPECT_FALSE(test("arena.c2", "growing").first_child());
  EXPECT_FALSE(test("eager.c2", "churn").child("failure"));
  EXPECT_THAT(test("eager.c2", "churn").child_value("system-out"), HasSubstr("allocations in the timed window"));
  EXPECT_STREQ(test("eager.c3", "passed").child("failure").attribute("message").value(),
               "rank 0: killed by <SIGSEGV> & \"more\"");
  EXPECT_EQ(suite.attribute("failures").as_int(), 2);
  EXPECT_EQ(suite.attribute("tests").as_int(), 4 + 4 * 6);
}

TEST_F(findings, that_could_not_be_looked_for_are_skipped_not_passed) {
  run.soak.windows = 0;
  auto const other = synthetic_folder(scratch.path / "no_soak", run, 1);
  auto const summary = assemble(other).summary;
  auto const text = junit(summary, default_gates());
  EXPECT_THAT(text, HasSubstr("<skipped message=\"no soak: growth was not judged\""));
  EXPECT_EQ(failed_gates(summary, default_gates()), "") << "nobody asked for it";
  EXPECT_THAT(failed_gates(summary, parse_gates("growing")),
              HasSubstr("growing could not be told in eager.c2, eager.c3"));
  EXPECT_THAT(junit(summary, parse_gates("growing")), HasSubstr("failure type=\"growing\" message=\"no soak"));
  EXPECT_THAT(text, HasSubstr("one rank: nothing to compare it with"));
  EXPECT_THAT(table(summary), HasSubstr("growth was not judged: the job has no soak\n"));
}

TEST_F(findings, are_explained_down_to_the_last_event_and_byte) {
  auto const text = explanation(assemble(folder).summary);
  EXPECT_THAT(text, HasSubstr("aten::linear/aten::addmm"));
  EXPECT_THAT(text, HasSubstr("not accounted for: 0 allocations, 0 frees, 0 B"));
  EXPECT_THAT(text, HasSubstr("880 allocations in 80 requests: 11 in each, and 0 once"));
}

TEST_F(findings, of_a_job_without_a_soak_are_explained_without_one) {
  run.soak.windows = 0;
  auto const other = synthetic_folder(scratch.path / "no_soak", run, 1);
  auto result = synthetic_result(info, run, {"eager", 2, 0}, 0);
  result.measured->post.allocation_events += 1;
  store(other, result);
  auto const text = explanation(assemble(other).summary);
  EXPECT_THAT(text, HasSubstr("441 allocations in 40 requests: 11.0"));
  EXPECT_THAT(text, Not(HasSubstr("in the soak")));
}

TEST_F(findings, are_explained_with_what_the_operators_leave) {
  auto result = synthetic_result(info, run, {"eager", 2, 0}, 0);
  result.measured->tracked->ops.pop_back();
  store(folder, result);
  EXPECT_THAT(explanation(assemble(folder).summary), HasSubstr("not accounted for: 280 allocations, 280 frees, 0 B"));
}

TEST(gates, are_names_of_checks) {
  EXPECT_THAT(parse_gates("none").checks, IsEmpty());
  EXPECT_THAT(parse_gates("growing,straggler").checks, ElementsAre("growing", "straggler"));
  EXPECT_TRUE(parse_gates("growing").strict);
  EXPECT_FALSE(default_gates().strict);
  for (auto const* bad : {"", "grow", "growing,", ",growing", "growing none", "growing,none", "GROWING"})
    EXPECT_THROW(parse_gates(bad), input_error) << bad;
}

} // namespace
} // namespace plateau
