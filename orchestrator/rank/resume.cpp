// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/resume.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/rank/agreement.hpp"
#include "schemas/codec.hpp"

#include <set>
#include <string>
#include <utility>

namespace plateau {

namespace {

earlier_run agree_on_run(communicator& ranks, shared_folder const& folder, rank_options const& options) {
  auto const agreed = decided_by_rank_0(
      ranks,
      [&] {
        auto const run = open_to_resume({folder.here().path, options.job_file, options.overrides, ranks.size()});
        if (options.fail_on) refuse_gates_without_a_soak(*options.fail_on, run.run);
        return encode(run.info).dump();
      },
      "reading the run");
  auto info = decode<run_info>(json::parse(agreed));
  auto run = parse_job(info.job.dump(), "job");
  return {folder.here(), std::move(info), std::move(run)};
}

std::vector<kept_case> agree_on_names(communicator& ranks, earlier_run const& run) {
  auto const agreed = json::parse(decided_by_rank_0(
      ranks,
      [&] {
        auto names = json::array();
        for (auto const& each : cases_by_name(run)) names.push_back({each.id.text(), each.attempt});
        return names.dump();
      },
      "looking for results"));
  std::vector<kept_case> seem;
  for (auto const& each : agreed) seem.push_back({parse_case_id(each[0].get<std::string>()), each[1]});
  return seem;
}

// The ranks whose results this one reads. Only what is in rank 0's folder counts, so it reads those of the ranks that
// do not see it.
std::vector<int> read_here(communicator const& ranks, shared_folder const& folder) {
  if (ranks.rank() != 0) return folder.shares(ranks.rank()) ? std::vector{ranks.rank()} : std::vector<int>{};
  std::vector<int> mine{0};
  for (int rank = 1; rank < ranks.size(); ++rank)
    if (!folder.shares(rank)) mine.push_back(rank);
  return mine;
}

resume_plan agree_on_plan(communicator& ranks, shared_folder const& folder, earlier_run const& run, bool retry_failed) {
  auto const seem = agree_on_names(ranks, run);
  auto const mine = beating(ranks, [&] {
    std::string found(seem.size(), '1');
    for (auto const rank : read_here(ranks, folder))
      for (std::size_t i = 0; i < seem.size(); ++i)
        if (found[i] == '1' && !is_final(run, seem[i], rank, retry_failed)) found[i] = '0';
    return found;
  });
  std::vector<bool> stands(seem.size(), true);
  for (auto const& found : ranks.all_gather(mine, "reading the results"))
    for (std::size_t i = 0; i < stands.size(); ++i) stands[i] = stands[i] && found[i] == '1';
  return plan_of(run.run, seem, stands);
}

} // namespace

resumed_run take_up(communicator& ranks, shared_folder& folder, rank_options const& options) {
  folder.reopen(options.resume->folder);
  resumed_run run;
  run.before = agree_on_run(ranks, folder, options);
  run.attempt = std::ssize(attempts_of(run.before.info)) + 1;
  ranks.set_patience(communicator::seconds(run.before.run.timeouts_s.collective));
  run.plan = agree_on_plan(ranks, folder, run.before, options.resume->retry_failed);
  return run;
}

void refuse_if_moved(resumed_run const& run, std::vector<rank_info> const& infos) {
  std::set<std::int64_t> measured_by;
  for (auto const& kept : run.plan.kept) measured_by.insert(kept.attempt);
  std::vector<rank_place> now;
  for (auto const& info : infos) now.push_back(place_of(info));
  for (auto const attempt : measured_by) {
    std::vector<rank_place> before;
    for (auto const& info : infos) before.push_back(place_at(run.before.info, info.rank, attempt));
    auto const what = moved_ranks(before, "in attempt " + std::to_string(attempt), now, "now");
    if (what.empty()) continue;
    throw refused("what is measured here does not compare with what is there of " + run.before.info.run_id + ": " +
                  what + "; resume it where it was begun, or give --allow-moved, which marks the cases");
  }
}

} // namespace plateau
